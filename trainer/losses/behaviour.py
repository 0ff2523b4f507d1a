"""w = prox / behaviour: what corrects for tokens that an older policy, or another arithmetic, has sampled."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainer.contracts import LossConfig

MAX_LOG_RATIO = 20.0
"""Ratios are cut at e^20 before anything multiplies them: far past every clip, and finite."""


@dataclass(frozen=True, slots=True)
class BehaviourWeight:
    """`weight` [N]: what a token's loss is multiplied by, 0 where masked. `kept` [N]: False where masked."""

    weight: torch.Tensor
    kept: torch.Tensor


def behaviour_weight(prox: torch.Tensor, behaviour: torch.Tensor, config: LossConfig) -> BehaviourWeight:
    """prox, behaviour [N]: log-probabilities, nats. No gradient passes."""
    ratio = log_ratio(prox.detach(), behaviour).exp()
    if config.behaviour_cap == "mask":
        kept = ratio <= config.behaviour_mask_above
        weight = torch.where(kept, ratio, torch.zeros_like(ratio))
    else:
        kept = torch.ones_like(ratio, dtype=torch.bool)
        weight = ratio.clamp(max=config.behaviour_truncate_at)
    if config.policy_form == "doubly_clipped":
        clipped = weight.clamp(1 - config.clip_low, 1 + config.clip_low)
        weight = torch.where(kept, clipped, torch.zeros_like(clipped))
    return BehaviourWeight(weight, kept)


def log_ratio(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """log(above / below), cut where its exponential would leave what floats hold."""
    return (above - below).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
