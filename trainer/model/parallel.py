"""Ranks, devices and process groups: one process alone, or several under torchrun, from the same code."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where this process stands. All ranks are tensor-parallel: each holds a slice of every layer."""

    device: torch.device
    rank: int
    size: int

    @property
    def group(self) -> Any:
        """The tensor-parallel process group."""
        return parallel_state.get_tensor_model_parallel_group()

    @property
    def first(self) -> bool:
        """True on the rank that speaks and writes."""
        return self.rank == 0


def choose_device(name: str) -> torch.device:
    """`auto` takes the GPU where there is one. Raises `ValueError` where cuda is asked for and absent."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda was asked for, but torch finds no GPU")
    return (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        if name == "cuda"
        else torch.device("cpu")
    )


def join(device: torch.device) -> Ranks:
    """Joins the process group: torchrun's where its variables are set, otherwise one of this process alone.

    A lone process meets nobody, so it needs no port: its store is in its own memory.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ and "MASTER_ADDR" in os.environ:
            dist.init_process_group(backend)
        else:
            dist.init_process_group(
                backend,
                store=dist.HashStore(),  # type: ignore[attr-defined]
                rank=0,
                world_size=1,
            )
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=dist.get_world_size())
    return Ranks(device=device, rank=dist.get_rank(), size=dist.get_world_size())


def leave() -> None:
    """Undoes `join`."""
    if parallel_state.model_parallel_is_initialized():
        parallel_state.destroy_model_parallel()
    if dist.is_initialized():
        dist.destroy_process_group()


def gather_slices(tensor: torch.Tensor, dim: int, ranks: Ranks) -> torch.Tensor:
    """The slices of all ranks joined along `dim`, on every rank."""
    if ranks.size == 1:
        return tensor
    slices = [torch.empty_like(tensor) for _ in range(ranks.size)]
    dist.all_gather(slices, tensor.contiguous(), group=ranks.group)
    return torch.cat(slices, dim=dim)


def share(value: Any, ranks: Ranks) -> Any:
    """Rank 0's picklable value, on every rank."""
    if ranks.size == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]
