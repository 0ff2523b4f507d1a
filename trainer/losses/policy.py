"""Clipped policy loss: decoupled, doubly clipped or plain (PPO, arXiv 1707.06347; decoupled: 2110.00641)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainer.contracts import LossConfig
from trainer.losses.behaviour import behaviour_weight, log_ratio


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """`loss` [N], 0 where masked; `kept` [N]: not masked; `clipped` [N]: the clip, not the ratio, decided."""

    loss: torch.Tensor
    kept: torch.Tensor
    clipped: torch.Tensor


def policy_loss(
    logprob: torch.Tensor,
    prox: torch.Tensor,
    behaviour: torch.Tensor,
    advantage: torch.Tensor,
    config: LossConfig,
) -> PolicyLoss:
    """All [N]. -w * min(r A, clip(r, 1 - eps, 1 + eps_hi) A), not below dual_clip * A where A < 0.

    decoupled: r = policy / prox, w = prox / behaviour; plain: r = policy / behaviour, w = 1.
    """
    if config.policy_form == "plain":
        anchor, weight = behaviour, torch.ones_like(prox)
        kept = torch.ones_like(prox, dtype=torch.bool)
    else:
        capped = behaviour_weight(prox, behaviour, config)
        anchor, weight, kept = prox.detach(), capped.weight, capped.kept
    ratio = log_ratio(logprob, anchor).exp()
    free = ratio * advantage
    bound = ratio.clamp(1 - config.clip_low, 1 + config.clip_high) * advantage
    objective = torch.minimum(free, bound)
    clipped = bound < free
    if config.dual_clip is not None:
        floor = config.dual_clip * advantage
        clipped = clipped | ((advantage < 0) & (objective < floor))
        objective = torch.where(advantage < 0, torch.maximum(objective, floor), objective)
    return PolicyLoss(-(weight * objective), kept, clipped & kept)
