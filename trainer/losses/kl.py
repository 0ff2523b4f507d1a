"""Estimates of a KL from sampled tokens (Schulman 2020, "Approximating KL divergence").

With d = log(other / sampled) on tokens drawn from `sampled`: k1 = -d has no bias and may be negative; k2 =
d^2 / 2 has little variance and, as a loss, the KL's own gradient; k3 = e^d - 1 - d has no bias and is never
negative. Minimised as it stands, k1 has a gradient of zero in expectation: it is a gauge, or a term of a
reward.
"""

from __future__ import annotations

from typing import Literal

import torch

from trainer.losses.behaviour import log_ratio


def k1(sampled: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Per token [N], nats: log(sampled / other)."""
    return log_ratio(sampled, other)


def k2(sampled: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Per token [N], nats: half the squared log-ratio."""
    return log_ratio(other, sampled).square() / 2


def k3(sampled: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Per token [N], nats: e^d - 1 - d, d = log(other / sampled)."""
    gap = log_ratio(other, sampled)
    return gap.exp() - 1 - gap


def estimate(kind: Literal["k1", "k2", "k3"], sampled: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The estimate of that name, per token [N]."""
    return {"k1": k1, "k2": k2, "k3": k3}[kind](sampled, other)
