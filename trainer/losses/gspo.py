"""GSPO: one ratio for a whole reply, the geometric mean of its tokens' (Group Sequence
Policy Optimization, arXiv
2507.18071). With the aggregation `sequence` it is the paper's objective; with advantages that differ
from token to token it is its GSPO-token."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trainer.contracts import LossConfig
from trainer.losses.behaviour import log_ratio
from trainer.losses.policy import PolicyLoss
from trainer.losses.segments import reply_mean


def gspo_loss(
    logprob: torch.Tensor,
    behaviour: torch.Tensor,
    advantage: torch.Tensor,
    sizes: Sequence[int],
    config: LossConfig,
) -> PolicyLoss:
    """All [N], replies of `sizes` tokens. -min(s A, clip(s, 1 - eps, 1 + eps_hi) A),
    s = exp(mean log(policy / behaviour)) of the reply. The paper clips within 3e-4 and 4e-4:
    s moves far less than a token's ratio."""
    ratio = reply_mean(log_ratio(logprob, behaviour), sizes).exp()
    free = ratio * advantage
    bound = ratio.clamp(1 - config.clip_low, 1 + config.clip_high) * advantage
    return PolicyLoss(
        -torch.minimum(free, bound), torch.ones_like(ratio, dtype=torch.bool), (bound < free).detach()
    )
