"""rl_weight x policy loss + opd_weight x distillation + kl_weight x KL to the base."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainer.contracts import LossConfig
from trainer.losses.distill import distill_advantage
from trainer.losses.kl import k3
from trainer.losses.policy import policy_loss


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Flat reply tokens [N] of some samples.

    A share is a token's part of its mean over the whole batch: 1 over a denominator that was counted before
    anything was masked, and 0 where the token's sample takes no part in that loss. What is not known (behaviour
    without a ratio, teacher without a hint) has share 0 there, or equals `prox`, so that its ratio is 1.
    """

    logprob: torch.Tensor
    """Of the policy now; the gradient passes here."""
    prox: torch.Tensor
    """Of the policy when the step began."""
    behaviour: torch.Tensor
    """Of the engine that sampled."""
    advantage: torch.Tensor
    """Reward minus baseline."""
    rl_share: torch.Tensor
    opd_share: torch.Tensor
    kl_share: torch.Tensor
    teacher: torch.Tensor | None
    """Of the hinted teacher (sampled distillation)."""
    teacher_kl: torch.Tensor | None
    """KL(policy, teacher) over the whole vocabulary; the gradient passes here as well (full_kl)."""
    base: torch.Tensor | None
    """Of the bare base (KL to the base)."""


@dataclass(frozen=True, slots=True)
class CombinedLoss:
    """`total` has the gradient; the parts are unweighted sums of share x loss. `kept`, `clipped` [N]."""

    total: torch.Tensor
    rl: torch.Tensor
    opd: torch.Tensor
    kl: torch.Tensor
    kept: torch.Tensor
    clipped: torch.Tensor


def combined_loss(batch: TokenBatch, config: LossConfig) -> CombinedLoss:
    """One scalar for a micro-batch; summed over a batch's micro-batches it is the batch's loss."""
    reward = policy_loss(batch.logprob, batch.prox, batch.behaviour, batch.advantage, config)
    rl = _weigh(reward.loss, batch.rl_share)
    in_rl = batch.rl_share > 0
    kept, clipped = reward.kept | ~in_rl, reward.clipped & in_rl
    opd = kl = torch.zeros((), device=batch.logprob.device)
    if batch.teacher_kl is not None:
        opd = _weigh(batch.teacher_kl, batch.opd_share)
    elif batch.teacher is not None:
        pull = distill_advantage(batch.teacher, batch.prox, config.opd_clip)
        distilled = policy_loss(batch.logprob, batch.prox, batch.behaviour, pull, config)
        opd = _weigh(distilled.loss, batch.opd_share)
        in_opd = batch.opd_share > 0
        kept = kept & (distilled.kept | ~in_opd)
        clipped = clipped | (distilled.clipped & in_opd)
    if batch.base is not None:
        kl = _weigh(k3(batch.logprob, batch.base), batch.kl_share)
    total = config.rl_weight * rl + config.opd_weight * opd + config.kl_weight * kl
    return CombinedLoss(total, rl.detach(), opd.detach(), kl.detach(), kept, clipped)


def _weigh(loss: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Sum of share x loss over the tokens that take part: what does not is left out, not multiplied by zero."""
    return torch.where(share > 0, loss * share, torch.zeros_like(loss)).sum()
