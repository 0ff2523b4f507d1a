"""Ranks, devices and process groups: one process alone, or several under torchrun, from the same code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from megatron.core import parallel_state

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where this process stands among `replicas` x `size` processes.

    `size` tensor-parallel ranks hold a slice of every layer each, together one replica of the base; replicas
    hold the same adapter, take different sequences and add their gradients.
    """

    device: torch.device
    rank: int
    size: int
    replica: int = 0
    replicas: int = 1

    @property
    def group(self) -> Any:
        """The tensor-parallel process group."""
        return parallel_state.get_tensor_model_parallel_group()

    @property
    def world(self) -> int:
        """Processes in all."""
        return self.size * self.replicas

    @property
    def first(self) -> bool:
        """True on the rank that speaks and writes."""
        return self.rank == 0 and self.replica == 0


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


def join(device: torch.device, tensor_parallel: int = 0) -> Ranks:
    """Joins the process group: torchrun's where its variables are set, otherwise one of this process alone.

    `tensor_parallel` ranks share a base (0: all of them); raises `ValueError` where it does not divide their
    number.

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
    world = dist.get_world_size()
    size = tensor_parallel or world
    if world % size:
        raise ValueError(f"{world} ranks cannot be divided into groups of {size}")
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=size)
    return Ranks(
        device=device,
        rank=dist.get_rank() % size,
        size=size,
        replica=dist.get_rank() // size,
        replicas=world // size,
    )


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
    """The first rank's picklable value, on every rank."""
    if ranks.world == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def mine(items: Sequence[T], ranks: Ranks) -> Sequence[T]:
    """This replica's part of what the replicas divide among them."""
    return items[ranks.replica :: ranks.replicas]


def merge(found: dict[int, T], ranks: Ranks) -> dict[int, T]:
    """What the replicas found, picklable and on the host, joined on every rank."""
    if ranks.replicas == 1:
        return found
    parts: list[Any] = [None] * ranks.replicas
    dist.all_gather_object(parts, found, group=parallel_state.get_data_parallel_group())
    return {key: value for part in parts for key, value in part.items()}


def add_over_replicas(tensors: Sequence[torch.Tensor], ranks: Ranks) -> None:
    """Each tensor becomes the sum of the replicas'; all travel as one."""
    if ranks.replicas == 1 or not tensors:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    dist.all_reduce(flat, group=parallel_state.get_data_parallel_group())
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
