"""The numbers of a step, and what they say of each sample. Names are those of the gauges they feed.

rollout against learner (tokens with an exact ratio): `train_rollout_logprob_abs_diff` (mean |engine -
learner|), `rollout_logprob_abs_diff_max`, `rollout_k3`, `ratio_mean`, `ratio_max` (learner / engine), `ess`
(fraction), `geometric_outside_fraction` (tokens of replies whose geometric mean ratio leaves the guard's
band). what the losses did: `loss`, `loss_rl`, `loss_opd`, `loss_kl`, `mask_fraction`, `clip_fraction`,
`opd_advantage_mean`, `opd_clip_fraction`, `opd_kl_mean`, `advantage_abs_mean`, `reward_mean`, `baseline`.
sizes: `samples`, `samples_rl`, `samples_opd`, `tokens`, `tokens_rl`, `tokens_opd`, `tokens_prompt`;
`sequences` and `tokens_read`: what is left of the samples' prompts and replies once turns of a session are
read as one. added by the step: `grad_norm`, `lr`, `step`, `step_logprob_abs_diff`, `step_k3` (how far the
policy moved).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import torch

from trainer.batching import chained
from trainer.contracts import SampleOutcome, StepConfig
from trainer.learn import Losses, SampleTokens, student_row
from trainer.losses.behaviour import log_ratio
from trainer.losses.geometric import geometric_ratio
from trainer.losses.kl import k3
from trainer.signals import Signal, rewards_used

Metrics = dict[str, float]


def sizes(signals: Sequence[Signal], config: StepConfig) -> Metrics:
    """What is known before anything is computed."""

    def tokens(chosen: list[Signal]) -> float:
        return float(sum(len(s.sample.output_ids) for s in chosen))

    rl, opd = [s for s in signals if s.rl], [s for s in signals if s.opd]
    rewards = rewards_used(signals)
    chains = chained([student_row(index, signal) for index, signal in enumerate(signals) if signal.parts])
    found = {
        "samples": float(len(signals)),
        "samples_rl": float(len(rl)),
        "samples_opd": float(len(opd)),
        "tokens": tokens([s for s in signals if s.parts]),
        "tokens_rl": tokens(rl),
        "tokens_opd": tokens(opd),
        "tokens_prompt": float(sum(len(s.sample.prompt_ids) for s in signals if s.parts)),
        "sequences": float(len(chains)),
        "tokens_read": float(sum(len(chain.ids) for chain in chains)),
    }
    if rewards:
        found["reward_mean"] = sum(rewards) / len(rewards)
        if config.advantage == "ema":
            found["baseline"] = rewards[0] - next(s.advantage for s in rl)
        found["advantage_abs_mean"] = sum(abs(s.advantage) for s in rl) / len(rl)
    return found


def rollout_metrics(seen: Mapping[int, SampleTokens], config: StepConfig) -> Metrics:
    """The gap between who sampled and who learns; empty where no sample has an exact ratio."""
    exact = [tokens for tokens in seen.values() if tokens.behaviour is not None]
    if not exact:
        return {}
    prox = torch.cat([tokens.prox for tokens in exact]).double()
    behaviour = torch.cat([tokens.behaviour for tokens in exact if tokens.behaviour is not None]).double()
    gap = (prox - behaviour).abs()
    ratio = log_ratio(prox, behaviour).exp()
    replies = geometric_ratio(prox, behaviour, [tokens.prox.numel() for tokens in exact])
    outside = (replies < config.loss.geometric_low) | (replies > config.loss.geometric_high)
    return {
        "geometric_outside_fraction": outside.double().mean().item(),
        "train_rollout_logprob_abs_diff": gap.mean().item(),
        "rollout_logprob_abs_diff_max": gap.max().item(),
        "rollout_k3": k3(behaviour, prox).mean().item(),
        "ratio_mean": ratio.mean().item(),
        "ratio_max": ratio.max().item(),
        "ess": (ratio.sum() ** 2 / (ratio.numel() * (ratio**2).sum())).item(),
    }


def loss_metrics(losses: Losses, seen: Mapping[int, SampleTokens], config: StepConfig) -> Metrics:
    """What the losses were, and how many tokens were left out or clipped."""
    kept = torch.cat([tokens.kept for tokens in seen.values()])
    clipped = torch.cat([tokens.clipped for tokens in seen.values()])
    found = {
        "loss": losses.total,
        "loss_rl": losses.rl,
        "loss_opd": losses.opd,
        "loss_kl": losses.kl,
        "mask_fraction": 1 - kept.double().mean().item(),
        "clip_fraction": clipped.double().mean().item(),
    }
    pulls = [tokens.teacher - tokens.prox for tokens in seen.values() if tokens.teacher is not None]
    if pulls:
        pull = torch.cat(pulls).double()
        found["opd_advantage_mean"] = pull.mean().item()
        found["opd_clip_fraction"] = (pull.abs() > config.loss.opd_clip).double().mean().item()
    kls = [tokens.teacher_kl for tokens in seen.values() if tokens.teacher_kl is not None]
    if kls:
        found["opd_kl_mean"] = torch.cat(kls).double().mean().item()
    return found


def strongest_signal(signals: Sequence[Signal], seen: Mapping[int, SampleTokens]) -> float:
    """Largest |advantage| or KL of any token: under `signals.NOISE` there is nothing to learn."""
    found = [abs(s.advantage) for s in signals if s.rl]
    for tokens in seen.values():
        if tokens.teacher is not None:
            found.append((tokens.teacher - tokens.prox).abs().max().item())
        if tokens.teacher_kl is not None:
            found.append(tokens.teacher_kl.abs().max().item())
    return max(found, default=0.0)


def moved(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> Metrics:
    """How far one step took the policy, on the same tokens."""
    if not before:
        return {}
    old, new = torch.cat(list(before)).double(), torch.cat(list(after)).double()
    return {
        "step_logprob_abs_diff": (new - old).abs().mean().item(),
        "step_k3": k3(old, new).mean().item(),
    }


def outcomes(signals: Sequence[Signal], seen: Mapping[int, SampleTokens]) -> tuple[SampleOutcome, ...]:
    """One for each sample, in order."""
    return tuple(_outcome(signal, seen.get(index)) for index, signal in enumerate(signals))


def staleness(signals: Sequence[Signal]) -> dict[str, int]:
    """How many samples are how many steps old."""
    counts = Counter(signal.sample.staleness for signal in signals)
    return {str(age): counts[age] for age in sorted(counts)}


def finite(metrics: Metrics) -> Metrics:
    """Without what a report cannot carry."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _outcome(signal: Signal, tokens: SampleTokens | None) -> SampleOutcome:
    advantage = signal.advantage if signal.rl else None
    if tokens is None:
        return SampleOutcome(
            sample_id=signal.sample.sample_id, parts=(), reason=signal.reason, advantage=advantage
        )
    gap = None if tokens.behaviour is None else (tokens.prox - tokens.behaviour).abs().mean().item()
    pull = None if tokens.teacher is None else (tokens.teacher - tokens.prox).mean().item()
    return SampleOutcome(
        sample_id=signal.sample.sample_id,
        parts=signal.parts,
        reason=signal.reason,
        tokens=tokens.prox.numel(),
        advantage=advantage,
        opd_advantage=pull if pull is not None and math.isfinite(pull) else None,
        masked=1 - tokens.kept.double().mean().item(),
        logprob_abs_diff=gap if gap is not None and math.isfinite(gap) else None,
    )
