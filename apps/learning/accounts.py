"""The books of learning: every finished turn has a sample, a stated reason why none,
or something it waits for."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.conversations.models import Feedback, Turn, TurnState
from apps.judging.models import Judgement, JudgementState
from apps.judging.reasons import reason_of
from apps.learning.models import RunState, Sample, SampleState

LATE_AFTER = dt.timedelta(minutes=10)
"""What upkeep finds and announces again within seconds is not lost; what stands still for so long is."""

AWAITED = "next state awaited"
JUDGED = "judgement under way"
ATTEMPT = "outcome of the attempt awaited"
SAMPLED = "sample under way"
LOST = "lost"


@dataclass(frozen=True, slots=True)
class Books:
    """What became of the finished turns in scope. They agree where `problems` is empty."""

    finished: int
    """Turns that ended one way or another."""
    samples: Mapping[str, int]
    """State of a sample -> turns."""
    reasons: Mapping[str, int]
    """Reason why a turn taught nothing -> turns; adds up to those ineligible and dropped."""
    waiting: Mapping[str, int]
    """What is waited for -> turns."""
    problems: list[str] = field(default_factory=list)
    """What does not add up, in words."""


def books(*, policy_id: uuid.UUID | None = None, late_after: dt.timedelta = LATE_AFTER) -> Books:
    """Count the finished turns in scope (or of one policy) and check that nothing
    is missing or there twice."""
    turns = Turn.objects.exclude(Turn.OPEN)
    samples = Sample.objects.all()
    if policy_id is not None:
        turns, samples = turns.filter(policy_id=policy_id), samples.filter(policy_id=policy_id)
    by_state = _counted(samples, "state")
    left_out = samples.filter(state__in=(SampleState.INELIGIBLE, SampleState.DROPPED))
    reasons: Counter[str] = Counter()
    unlisted: Counter[str] = Counter()
    for stored, count in _counted(left_out, "reason").items():
        reason = reason_of(stored)
        reasons[reason.value if reason is not None else stored] += count
        if reason is None:
            unlisted[stored] += count
    waiting = _waiting(turns.filter(sample__isnull=True), timezone.now() - late_after)
    finished = turns.count()
    problems = [
        f"{count} turns give a reason that is not listed: {stored!r}" for stored, count in unlisted.items()
    ]
    accounted = sum(by_state.values()) + sum(waiting.values())
    if finished != accounted:
        problems.append(f"{finished} turns finished, {accounted} are accounted for")
    if sum(reasons.values()) != by_state.get(SampleState.INELIGIBLE, 0) + by_state.get(
        SampleState.DROPPED, 0
    ):
        problems.append("reasons and samples left out are not as many")
    if waiting.get(LOST):
        problems.append(f"{waiting[LOST]} turns have neither sample nor reason, and wait for nothing")
    problems += _broken(samples)
    return Books(finished, by_state, dict(sorted(reasons.items())), waiting, problems)


def _counted(rows: QuerySet[Sample], name: str) -> dict[str, int]:
    return dict(rows.order_by().values_list(name).annotate(n=Count("id")))


def _waiting(turns: QuerySet[Turn], late: dt.datetime) -> dict[str, int]:
    """Return what the turns without a sample wait for."""
    judgements = Judgement.objects.filter(turn=OuterRef("pk"))
    attempt = Q(session__trajectory__isnull=False, session__trajectory__outcome__isnull=True)
    since = Coalesce(F("next_state_at"), F("completed_at"), F("created_at"))
    kinds = turns.annotate(
        since=since,
        pending=Exists(judgements.filter(state=JudgementState.PENDING)),
        said=Exists(judgements.exclude(state=JudgementState.PENDING)) | Exists(_feedback()),
    ).annotate(
        awaits=Case(
            When(attempt & Q(session__idle_at__isnull=True), then=Value(ATTEMPT)),
            When(pending=True, said=False, then=Value(JUDGED)),
            When(
                Q(state=TurnState.COMPLETE, side=False, said=False)
                & Q(next_state_at__isnull=True, session__idle_at__isnull=True),
                then=Value(AWAITED),
            ),
            When(since__gte=late, then=Value(SAMPLED)),
            default=Value(LOST),
        )
    )
    return dict(kinds.order_by().values_list("awaits").annotate(n=Count("id")))


def _feedback() -> QuerySet[Feedback]:
    return Feedback.objects.filter(turn=OuterRef("pk"))


def _broken(samples: QuerySet[Sample]) -> list[str]:
    """Return which promises of the ledger rows break that no constraint can hold across tables."""
    checks = {
        "samples belong to another policy or tenant than their turns": samples.exclude(
            turn__policy_id=F("policy_id"), turn__tenant_id=F("tenant_id")
        ),
        "samples belong to turns that have not finished": samples.filter(turn__state=TurnState.PENDING),
        "consumed samples belong to a run that made no version": samples.filter(
            state=SampleState.CONSUMED
        ).exclude(run__state=RunState.SUCCEEDED, run__version__isnull=False),
        "claimed samples belong to a run that is over": samples.filter(state=SampleState.CLAIMED).exclude(
            run__state=RunState.RUNNING
        ),
        "samples belong to a run of another policy": samples.filter(run__isnull=False).exclude(
            run__policy_id=F("policy_id")
        ),
    }
    found = ((words, rows.count()) for words, rows in checks.items())
    return [f"{count} {words}" for words, count in found if count]
