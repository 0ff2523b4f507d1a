"""CISPO: the clipped ratio is a weight that passes no gradient,
so no token's gradient is lost (MiniMax-M1, arXiv
2506.13585)."""

from __future__ import annotations

import torch

from trainer.contracts import LossConfig
from trainer.losses.behaviour import log_ratio
from trainer.losses.policy import PolicyLoss


def cispo_loss(
    logprob: torch.Tensor, behaviour: torch.Tensor, advantage: torch.Tensor, config: LossConfig
) -> PolicyLoss:
    """All [N]. -stop_gradient(clip(policy / behaviour, 1 - eps, 1 + eps_hi)) x A x log policy."""
    ratio = log_ratio(logprob.detach(), behaviour).exp()
    weight = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    return PolicyLoss(
        -(weight * advantage * logprob), torch.ones_like(ratio, dtype=torch.bool), weight != ratio
    )
