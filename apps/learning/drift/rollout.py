"""Gauge 1, rollout ↔ learner: what a step measured between the engine's tokens and its own."""

import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from apps.adapters.models import Policy
from apps.learning.drift.measures import commonest, known, mean, median, repetition
from apps.learning.drift.models import DriftReading, Gauge
from apps.learning.models import Sample, SampleState

# straight from the trainer's report; `trainer/metrics.py` says what each is
MEASURED = (
    "train_rollout_logprob_abs_diff",
    "rollout_logprob_abs_diff_max",
    "rollout_k3",
    "ratio_mean",
    "ratio_max",
    "ess",
    "clip_fraction",
    "mask_fraction",
    "step_logprob_abs_diff",
    "step_k3",
    "grad_norm",
    "lr",
    "reward_mean",
    "advantage_abs_mean",
)
LENGTHS_BEFORE = 8  # readings that a length is compared with
LEAST_BEFORE = 3
LEAST_LENGTHS = 4  # replies whose length is compared: a run that the clock called for may have one
REWARDS = 32  # of the policy, the newest, that are looked at together: one batch says little
LEAST_REWARDS = 24
REPLIES = 16  # likewise: one reply that loops stops nobody
LEAST_REPLIES = 8


def measure_step(
    *, policy: Policy, metrics: Mapping[str, Any], outcomes: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return a step's measures and what is behind them.

    `outcomes` is the trainer's word on each sample, by id.
    """
    rows = list(Sample.objects.filter(id__in=[uuid.UUID(name) for name in outcomes]).select_related("turn"))
    replies = [row.turn.output_ids for row in rows]
    tokens = mean([float(len(ids)) for ids in replies])
    rewards = _last_rewards(policy, rows)
    last = replies + _replies_before(policy, rows, most=REPLIES - len(replies))
    staleness = {int(age): int(count) for age, count in dict(metrics.get("staleness") or {}).items()}
    aged = sum(staleness.values())
    gaps = _gaps(rows, outcomes)
    older = [gap for age, gap in gaps.items() if age > 0]
    usual = _usual_tokens(policy)
    measured = {name: metrics[name] for name in MEASURED if isinstance(metrics.get(name), int | float)}
    values = known(
        {
            **measured,
            "staleness_mean": sum(a * n for a, n in staleness.items()) / aged if aged else None,
            "staleness_max": float(max(staleness)) if staleness else None,
            "boundary_jump": max(older) - gaps[0] if older and 0 in gaps else None,
            "reply_tokens": tokens,
            "length_ratio": tokens / usual if tokens and usual and len(rows) >= LEAST_LENGTHS else None,
            "repetition": mean([repetition(ids) for ids in last]) if len(last) >= LEAST_REPLIES else None,
            "reward_same": commonest(rewards) if len(rewards) >= LEAST_REWARDS else None,
        }
    )
    detail = {
        "staleness": {str(age): staleness[age] for age in sorted(staleness)},
        "gap_by_staleness": {str(age): gaps[age] for age in sorted(gaps)},
        "samples": len(rows),
    }
    return values, detail


def _gaps(rows: list[Sample], outcomes: Mapping[str, Mapping[str, Any]]) -> dict[int, float]:
    """Return the mean |engine - learner| of tokens by the staleness of their samples, nats."""
    sums: dict[int, float] = defaultdict(float)
    tokens: dict[int, int] = defaultdict(int)
    for row in rows:
        said = outcomes[str(row.id)]
        gap, count = said.get("logprob_abs_diff"), int(said.get("tokens") or 0)
        if gap is not None and count and row.staleness is not None:
            sums[row.staleness] += float(gap) * count
            tokens[row.staleness] += count
    return {age: sums[age] / tokens[age] for age in sums}


def _usual_tokens(policy: Policy) -> float | None:
    """Return how long replies were in the steps before; None while too few were made."""
    before = (
        DriftReading.objects.filter(policy=policy, gauge=Gauge.ROLLOUT_LEARNER)
        .order_by("-created_at")
        .values_list("values__reply_tokens", flat=True)[:LENGTHS_BEFORE]
    )
    lengths = [float(length) for length in before if length is not None]
    return median(lengths) if len(lengths) >= LEAST_BEFORE else None


def _replies_before(policy: Policy, rows: list[Sample], *, most: int) -> list[list[int]]:
    """Return the newest replies that earlier steps were given, as token ids."""
    if most <= 0:
        return []
    before = (
        Sample.objects.filter(policy=policy, state__in=[SampleState.CONSUMED, SampleState.DROPPED])
        .exclude(id__in=[row.id for row in rows])
        .order_by("-created_at")
        .values_list("turn__output_ids", flat=True)[:most]
    )
    return list(before)


def _last_rewards(policy: Policy, rows: list[Sample]) -> list[float]:
    """Return the newest rewards that steps were given, those of this step first."""
    now = [row.reward for row in rows if row.reward is not None]
    before = (
        Sample.objects.filter(
            policy=policy, reward__isnull=False, state__in=[SampleState.CONSUMED, SampleState.DROPPED]
        )
        .exclude(id__in=[row.id for row in rows])
        .order_by("-created_at")
        .values_list("reward", flat=True)[:REWARDS]
    )
    return [*now, *(reward for reward in before if reward is not None)][:REWARDS]
