"""k3: an estimate of a KL from sampled tokens that is never negative (Schulman 2020, approximating KL divergence)."""

from __future__ import annotations

import torch

from trainer.losses.behaviour import log_ratio


def k3(sampled: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Per token [N], estimates KL(sampled || other) on tokens drawn from `sampled`: e^d - 1 - d, d = other - sampled."""
    gap = log_ratio(other, sampled)
    return gap.exp() - 1 - gap
