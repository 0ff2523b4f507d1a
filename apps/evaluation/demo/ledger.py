"""What the ledger says of the demo's policy. Reads only; the user's own part goes through the API."""

import datetime as dt
import uuid
from collections import Counter
from dataclasses import dataclass, field

from django.db.models import Count, Exists, OuterRef, QuerySet

from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import tenant_scope


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """One version: where it came from and what it cost. Times are seconds, moments are UTC."""

    number: int
    parent: int
    state: str
    reason: str
    live_at: dt.datetime | None
    samples: int
    with_hint: int
    run_seconds: float
    first_feedback_at: dt.datetime | None
    last_feedback_at: dt.datetime | None
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """The state of the policy now."""

    live: int = 0
    ready: int = 0
    unsettled: int = 0
    """Turns that were answered by the user and have no sample row yet."""
    open_run: str = ""
    """State of the run that is queued or running; empty where there is none."""
    publishing: int = 0
    """Versions that are not live and not refused yet."""
    swaps: int = 0
    """Moves of the live pointer to a version that had not been live before."""
    moves_back: int = 0
    runs: dict[str, int] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    last_problem: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The policy that the demo teaches."""

    tenant_id: uuid.UUID
    policy_id: uuid.UUID


def read_facts(subject: Subject) -> Facts:
    """Return where the policy stands."""
    with tenant_scope(subject.tenant_id):
        policy = Policy.objects.select_related("live").get(pk=subject.policy_id)
        runs = TrainingRun.objects.filter(policy=policy)
        samples = Sample.objects.filter(policy=policy)
        states = Counter(samples.values_list("state", flat=True))
        forward, back = _moves(policy)
        # one that is only made says what it waits for, which is no problem
        decided = AdapterVersion.objects.filter(policy=policy).exclude(state=VersionState.CREATED)
        problem = (
            runs.filter(state__in=[RunState.FAILED, RunState.NO_OP]).order_by("-created_at").first()
            or decided.exclude(reason="").order_by("-number").first()
        )
        return Facts(
            live=policy.live.number if policy.live else 0,
            ready=states[SampleState.READY],
            unsettled=_answered(policy).filter(~Exists(Sample.objects.filter(turn=OuterRef("pk")))).count(),
            open_run=runs.filter(state__in=OPEN_RUN_STATES).values_list("state", flat=True).first() or "",
            publishing=AdapterVersion.objects.filter(policy=policy, state=VersionState.CREATED).count(),
            swaps=forward,
            moves_back=back,
            runs=dict(Counter(runs.values_list("state", flat=True))),
            samples=dict(states),
            left_out=dict(Counter(samples.exclude(reason="").values_list("reason", flat=True))),
            last_problem=problem.reason if problem else "",
        )


def read_versions(subject: Subject) -> list[VersionFacts]:
    """Return every version of the policy, oldest first."""
    with tenant_scope(subject.tenant_id):
        moves = PointerMove.objects.filter(policy_id=subject.policy_id, to_version__isnull=False)
        live_at: dict[uuid.UUID | None, dt.datetime] = {}
        for move in moves.order_by("created_at"):
            live_at.setdefault(move.to_version_id, move.created_at)
        versions = AdapterVersion.objects.filter(policy_id=subject.policy_id).select_related("parent")
        return [_version_facts(version, live_at.get(version.pk)) for version in versions.order_by("number")]


def count_talk(subject: Subject) -> dict[str, int]:
    """Return how many turns the policy has had, by their kind."""
    with tenant_scope(subject.tenant_id):
        turns = Turn.objects.filter(policy_id=subject.policy_id)
        return {
            row["kind"]: row["n"] for row in turns.values("kind").annotate(n=Count("pk")).order_by("kind")
        }


def _answered(policy: Policy) -> QuerySet[Turn]:
    return Turn.objects.filter(
        policy=policy, kind=TurnKind.LIVE, side=False, state=TurnState.COMPLETE, next_state__isnull=False
    )


def _moves(policy: Policy) -> tuple[int, int]:
    """Count the moves to a version seen for the first time, and the other ones."""
    seen: set[uuid.UUID | None] = {None}
    forward = back = 0
    targets = PointerMove.objects.filter(policy=policy).order_by("created_at")
    for target in targets.values_list("to_version_id", flat=True):
        if target in seen:
            back += 1
        else:
            forward += 1
        seen.add(target)
    return forward, back


def _version_facts(version: AdapterVersion, live_at: dt.datetime | None) -> VersionFacts:
    run = TrainingRun.objects.filter(version=version).first()
    samples = list(Sample.objects.filter(run=run).select_related("turn")) if run else []
    feedback = [sample.turn.next_state_at for sample in samples if sample.turn.next_state_at]
    seconds = 0.0
    if run and run.started_at and run.finished_at:
        seconds = (run.finished_at - run.started_at).total_seconds()
    return VersionFacts(
        number=version.number,
        parent=version.parent.number if version.parent else 0,
        state=version.state,
        reason=version.reason,
        live_at=live_at,
        samples=len(samples),
        with_hint=sum(1 for sample in samples if sample.hints),
        run_seconds=seconds,
        first_feedback_at=min(feedback, default=None),
        last_feedback_at=max(feedback, default=None),
        metrics={k: v for k, v in (run.metrics if run else {}).items() if isinstance(v, int | float)},
    )
