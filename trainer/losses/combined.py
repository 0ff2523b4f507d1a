"""rl_weight x policy loss + opd_weight x distillation + kl_weight x KL to the base."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainer.contracts import LossConfig
from trainer.losses.behaviour import behaviour_weight
from trainer.losses.cispo import cispo_loss
from trainer.losses.distill import distill_advantage
from trainer.losses.geometric import geometric_kept
from trainer.losses.gspo import gspo_loss
from trainer.losses.kl import estimate
from trainer.losses.opsm import opsm_kept
from trainer.losses.policy import PolicyLoss, policy_loss
from trainer.losses.select import select_loss


@dataclass(frozen=True, slots=True)
class Candidates:
    """Log-probabilities [N, K] of the student's K likeliest tokens; the gradient passes through `logprob`."""

    logprob: torch.Tensor
    prox: torch.Tensor
    teacher: torch.Tensor


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Flat reply tokens [N] of some samples, reply after reply.

    A share is a token's part of its mean over the whole batch: 1 over a denominator that was counted before
    anything was masked, and 0 where the token's sample takes no part in that loss. What is not known
    (behaviour without a ratio, teacher without a hint) has share 0 there, or equals `prox`, so that its ratio
    is 1.
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
    """KL(policy, teacher) over the whole vocabulary or its k + 1 bins; the gradient passes here as well."""
    base: torch.Tensor | None
    """Of the bare base (KL to the base)."""
    sizes: tuple[int, ...]
    """Tokens of each reply; they sum to N."""
    candidates: Candidates | None = None
    """What top-k select works on."""
    toward: torch.Tensor | None = None
    """How far the anchor of ratios lies from `prox` toward `behaviour` [N], 0 to 1; None: at `prox`."""

    @property
    def anchor(self) -> torch.Tensor:
        """What ratios are taken to [N]: `prox`, or a log-linear interpolation of it with `behaviour`."""
        if self.toward is None:
            return self.prox
        return torch.lerp(self.prox, self.behaviour, self.toward)


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
    reward = _by_form(batch, batch.advantage, config)
    kept = reward.kept & _replies_kept(batch, config)
    if config.opsm_delta is not None:
        kept = kept & opsm_kept(
            batch.logprob, batch.behaviour, batch.advantage, batch.sizes, config.opsm_delta
        )
    in_rl = batch.rl_share > 0
    rl = _weigh(reward.loss, batch.rl_share, kept)
    kept, clipped = kept | ~in_rl, reward.clipped & in_rl
    opd = kl = torch.zeros((), device=batch.logprob.device)
    if batch.teacher_kl is not None:
        opd = _weigh(batch.teacher_kl, batch.opd_share)
    elif batch.candidates is not None:
        opd = _weigh(_select(batch, batch.candidates, config), batch.opd_share)
    elif batch.teacher is not None:
        pull = distill_advantage(batch.teacher, batch.prox, config.opd_clip)
        distilled = _by_form(batch, pull, config)
        in_opd = batch.opd_share > 0
        opd_kept = distilled.kept & _replies_kept(batch, config)
        opd = _weigh(distilled.loss, batch.opd_share, opd_kept)
        kept = kept & (opd_kept | ~in_opd)
        clipped = clipped | (distilled.clipped & in_opd)
    if batch.base is not None:
        kl = _weigh(estimate(config.kl_kind, batch.logprob, batch.base), batch.kl_share)
    total = config.rl_weight * rl + config.opd_weight * opd + config.kl_weight * kl
    return CombinedLoss(total, rl.detach(), opd.detach(), kl.detach(), kept, clipped)


def _by_form(batch: TokenBatch, advantage: torch.Tensor, config: LossConfig) -> PolicyLoss:
    if config.policy_form == "gspo":
        return gspo_loss(batch.logprob, batch.behaviour, advantage, batch.sizes, config)
    if config.policy_form == "cispo":
        return cispo_loss(batch.logprob, batch.behaviour, advantage, config)
    return policy_loss(batch.logprob, batch.anchor, batch.behaviour, advantage, config)


def _replies_kept(batch: TokenBatch, config: LossConfig) -> torch.Tensor:
    """[N]: False where the geometric guard, asked to mask, left a reply out."""
    if config.geometric_guard == "metric":
        return torch.ones_like(batch.prox, dtype=torch.bool)
    return geometric_kept(
        batch.prox, batch.behaviour, batch.sizes, low=config.geometric_low, high=config.geometric_high
    )


def _select(batch: TokenBatch, candidates: Candidates, config: LossConfig) -> torch.Tensor:
    """[N]; what an older policy sampled is weighted as everywhere else."""
    loss = select_loss(candidates.logprob, candidates.prox, candidates.teacher, config)
    return behaviour_weight(batch.anchor, batch.behaviour, config).weight * loss


def _weigh(loss: torch.Tensor, share: torch.Tensor, kept: torch.Tensor | None = None) -> torch.Tensor:
    """Sum of share x loss over the tokens that take part: what does not is left out, not multiplied by zero.

    The share was counted before masking, so what is masked makes the mean smaller, not the others heavier.
    """
    part = share > 0 if kept is None else (share > 0) & kept
    return torch.where(part, loss * share, torch.zeros_like(loss)).sum()
