"""The gradient's norm over all ranks and its clip; the learning rate along a policy's lineage."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch.nn.utils import get_total_norm

from trainer.contracts import StepConfig
from trainer.lora.layers import AdapterPair
from trainer.model.parallel import Ranks


def clip_gradient(pairs: Mapping[str, AdapterPair], ranks: Ranks, limit: float) -> float:
    """Scales every gradient so that their joint norm is at most `limit`; returns the norm before.

    What is cut over the ranks is summed over them, what each holds whole counts once. A norm that is not
    finite leaves the gradients as they are: the caller throws them away.
    """
    cut = [pair.a if pair.row_parallel else pair.b for pair in pairs.values()]
    held = [pair.b if pair.row_parallel else pair.a for pair in pairs.values()]
    squares = _square(cut)
    if ranks.size > 1:
        dist.all_reduce(squares, group=ranks.group)
    norm = (squares + _square(held)).sqrt().item()
    if limit < norm < float("inf"):
        for parameter in [*cut, *held]:
            if parameter.grad is not None:
                parameter.grad.mul_(limit / norm)
    return norm


def learning_rate(config: StepConfig, step: int) -> float:
    """Of the optimiser's step number `step`, from 0, along the lineage:
    a linear rise over `warmup_steps`, then constant,
    or down to `lr_floor` x lr over `schedule_steps`, where it stays."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return config.lr
    done = min(1.0, (step - config.warmup_steps) / config.schedule_steps)
    left = 1 - done if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.lr * (config.lr_floor + (1 - config.lr_floor) * left)


def set_learning_rate(optimizer: torch.optim.Optimizer, config: StepConfig, step: int) -> None:
    """Makes the next step of `optimizer` the lineage's step number `step`."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(config, step)


def _square(parameters: list[torch.nn.Parameter]) -> torch.Tensor:
    """Sum of the squares of all gradients, float64."""
    norm = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    return norm.to(parameters[0].device, torch.float64).pow(2)
