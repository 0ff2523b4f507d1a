"""The geometric sequence guard: a reply whose mean log-ratio left a narrow band came
from another policy, or from another arithmetic ("Geo-RS", When Speed Kills Stability, 2025)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trainer.losses.segments import reply_mean


def geometric_ratio(prox: torch.Tensor, behaviour: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """[N]: at each token exp(mean log(prox / behaviour)) of its reply; no gradient passes."""
    return reply_mean(prox.detach() - behaviour, sizes).exp()


def geometric_kept(
    prox: torch.Tensor, behaviour: torch.Tensor, sizes: Sequence[int], *, low: float, high: float
) -> torch.Tensor:
    """[N]: False on every token of a reply whose ratio is outside [low, high]."""
    ratio = geometric_ratio(prox, behaviour, sizes)
    return (ratio >= low) & (ratio <= high)
