"""Off-policy sequence masking: a bad reply that the policy has already left is not pushed
further away (DeepSeek-V3.2, arXiv 2512.02556)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trainer.losses.segments import reply_mean


def opsm_kept(
    logprob: torch.Tensor,
    behaviour: torch.Tensor,
    advantage: torch.Tensor,
    sizes: Sequence[int],
    delta: float,
) -> torch.Tensor:
    """All [N]. False on every token of a reply with A < 0 and mean log(behaviour /
    policy) > delta, nats a token."""
    gone = reply_mean(behaviour - logprob.detach(), sizes) > delta
    return ~(gone & (reply_mean(advantage, sizes) < 0))
