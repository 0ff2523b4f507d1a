"""Means over whole replies of flat reply tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def reply_mean(values: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """values [N], replies of `sizes` tokens one after the other -> [N]: at each token its reply's mean."""
    lengths = torch.tensor(sizes, device=values.device)
    owner = torch.arange(len(sizes), device=values.device).repeat_interleave(lengths)
    sums = values.new_zeros(len(sizes)).index_add(0, owner, values)
    return (sums / lengths)[owner]
