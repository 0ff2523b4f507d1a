"""Gauge 3, learner ↔ deploy: which turns may teach against all, judge against people,
reward against coming back."""

import datetime as dt
import math
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg

from apps.adapters.models import Policy
from apps.conversations.models import Feedback, Session, Turn, TurnKind
from apps.judging.agreement import agreed, kappa
from apps.judging.models import Judgement, JudgementSource, JudgementState
from apps.learning.drift.deploy import MOST_TURNS, TAUGHT, WEEK
from apps.learning.drift.measures import known, total_variation
from apps.learning.eligibility import sampling_temperature
from apps.learning.models import Sample

LEAST_TURNS = 50
LEAST_JUDGED = 20  # turns that both a judge and a person spoke of
LEAST_SESSIONS = 10  # with a good mean reward, and as many with a bad one
HIGHEST_WEIGHT = 20.0

Stratum = tuple[int, str, str]
"""log2 of the reply's length, finish reason, temperature: what the filters look at, and what they do not."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Inverse-propensity weights: with them the turns that teach stand for all turns of their kind.

    `by_sample` has mean 1. `unreachable` is the share of turns of kinds of which none may teach: no weight
    reaches those. `ess` is what the weights leave of the samples, as a fraction (Kish).
    """

    by_sample: dict[uuid.UUID, float]
    unreachable: float
    ess: float


@dataclass(frozen=True, slots=True)
class _Turn:
    stratum: Stratum
    sample_id: uuid.UUID | None
    taught: bool
    reason: str


def measure_selection(
    policy: Policy, *, since: dt.datetime, until: dt.datetime
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the gauge over the window."""
    turns = _turns(policy, since, until)
    taught = [turn for turn in turns if turn.taught]
    enough = len(turns) >= LEAST_TURNS
    agreement, judge_kappa, judged = _judge_against_people(policy, since, until)
    retention, sessions = _reward_against_retention(policy, since, until)
    values = known(
        {
            "let_through": len(taught) / len(turns) if enough else None,
            "selection_shift": total_variation(
                Counter(turn.stratum for turn in taught), Counter(turn.stratum for turn in turns)
            )
            if enough
            else None,
            "judge_agreement": agreement,
            "judge_kappa": judge_kappa,
            "reward_retention": retention,
        }
    )
    reasons = Counter(turn.reason.partition(":")[0] for turn in turns if turn.reason and not turn.taught)
    detail = {
        "turns": len(turns),
        "taught": len(taught),
        "reasons": dict(reasons.most_common(20)),
        "judged_by_both": judged,
        "sessions": sessions,
    }
    return values, detail


def inverse_propensity(policy: Policy, *, since: dt.datetime, until: dt.datetime) -> Weights:
    """Return weights that make up for what the filters left out, by kind of turn;
    each at most 20 times the smallest use.

    Horvitz and Thompson (1952), self-normalised: weight ∝ all / taught within a stratum, clipped.
    """
    turns = _turns(policy, since, until)
    all_, taught = Counter(t.stratum for t in turns), Counter(t.stratum for t in turns if t.taught)
    raw = {
        turn.sample_id: min(HIGHEST_WEIGHT, all_[turn.stratum] / taught[turn.stratum])
        for turn in turns
        if turn.taught and turn.sample_id is not None
    }
    if not raw:
        return Weights({}, 1.0 if turns else 0.0, 0.0)
    middle = sum(raw.values()) / len(raw)
    weights = {sample_id: weight / middle for sample_id, weight in raw.items()}
    squares = sum(weight**2 for weight in weights.values())
    unreachable = sum(count for stratum, count in all_.items() if not taught[stratum]) / len(turns)
    return Weights(weights, unreachable, len(weights) / squares)


def _turns(policy: Policy, since: dt.datetime, until: dt.datetime) -> list[_Turn]:
    rows = (
        Turn.objects.filter(
            policy=policy,
            kind=TurnKind.LIVE,
            side=False,
            created_at__gte=since,
            created_at__lt=until,
            sample__isnull=False,
        )
        .order_by("-created_at")
        .values_list(
            "output_ids__len", "finish_reason", "sampling", "sample__id", "sample__state", "sample__reason"
        )[:MOST_TURNS]
    )
    return [
        _Turn(
            stratum=(
                int(math.log2(length)) if length else -1,
                finish,
                f"{sampling_temperature(sampling, policy.temperature):.1f}",
            ),
            sample_id=sample_id,
            taught=state in TAUGHT,
            reason=reason,
        )
        for length, finish, sampling, sample_id, state, reason in rows
    ]


def _judge_against_people(
    policy: Policy, since: dt.datetime, until: dt.datetime
) -> tuple[float | None, float | None, int]:
    """Return agreement, kappa and the number of turns that both spoke of; each side's newest word counts.

    Kappa is None where both always say the same one thing: chance explains that, so it is no crossing either.
    """
    turns = Turn.objects.filter(policy=policy, created_at__gte=since, created_at__lt=until)
    people = dict(
        Feedback.objects.filter(turn__in=turns, score__isnull=False)
        .order_by("created_at")
        .values_list("turn_id", "score")
    )
    judges = dict(
        Judgement.objects.filter(
            turn_id__in=list(people), state=JudgementState.SETTLED, source=JudgementSource.JUDGE
        )
        .order_by("created_at")
        .values_list("turn_id", "reward")
    )
    pairs = Counter(
        (score or 0, judges[turn_id] or 0) for turn_id, score in people.items() if turn_id in judges
    )
    if pairs.total() < LEAST_JUDGED:
        return None, None, pairs.total()
    return agreed(pairs), kappa(pairs), pairs.total()


def _reward_against_retention(
    policy: Policy, since: dt.datetime, until: dt.datetime
) -> tuple[float | None, dict[str, int]]:
    """Return how much likelier a person comes back within a week after a conversation of good
    mean reward than of bad.

    A judge needs a next message, so that a conversation goes on says nothing of its own: coming back is
    another session of the same person. Looks a week further back, so that everybody had a week to come back.
    """
    since, until = since - WEEK, until - WEEK
    rewards = (
        Sample.objects.filter(
            policy=policy,
            source=TurnKind.LIVE,
            reward__isnull=False,
            turn__session__created_at__gte=since,
            turn__session__created_at__lt=until,
        )
        .order_by()
        .values_list("turn__session_id")
        .annotate(reward=Avg("reward"))
    )
    mean_reward = dict(rewards)
    came_back = _came_back(policy, since, until)
    back: dict[bool, list[float]] = defaultdict(list)
    for session_id, reward in mean_reward.items():
        if reward:
            back[reward > 0].append(float(session_id in came_back))
    counts = {"good": len(back[True]), "bad": len(back[False])}
    if min(counts.values()) < LEAST_SESSIONS:
        return None, counts
    return sum(back[True]) / counts["good"] - sum(back[False]) / counts["bad"], counts


def _came_back(policy: Policy, since: dt.datetime, until: dt.datetime) -> set[uuid.UUID]:
    """Return the sessions of the window whose person began another within a week."""
    rows = (
        Session.objects.filter(
            policy=policy, kind=TurnKind.LIVE, created_at__gte=since, created_at__lt=until + WEEK
        )
        .order_by("created_at")
        .values_list("pk", "created_at", "user_id", "end_user_id")
    )
    newest: dict[tuple[uuid.UUID, uuid.UUID | None], tuple[uuid.UUID, dt.datetime]] = {}
    found = set()
    for session_id, began, user_id, end_user_id in rows:
        person = (user_id, end_user_id)
        before = newest.get(person)
        if before is not None and began - before[1] < WEEK:
            found.add(before[0])
        newest[person] = (session_id, began)
    return found
