"""When a policy makes a step, and of which samples.

One policy has at most one open run (a partial unique index decides between several who try). The next run
starts when the version that the last one made is live or refused, so every step starts from the live one.
"""

import datetime as dt
import logging
import uuid

from django.db import IntegrityError, transaction
from django.db.models import Min
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.learning.config import TrainingConfig, resolve
from apps.learning.lineage import Lineage
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, SampleState, TrainingRun
from kernel import outbox
from kernel.errors import InvalidInput

logger = logging.getLogger(__name__)

FAILED_PAUSE_S = 30.0  # after a failed run; doubles with each one in a row
FAILED_PAUSE_MAX_S = 1800.0


def consider(*, policy_id: uuid.UUID) -> TrainingRun | None:
    """Start a run if a batch waits and nothing is in its way; return it, or None. Must run in a transaction."""
    # in READ COMMITTED two who each add a sample would not see the other's: one at a time
    policy = (
        Policy.objects.select_for_update(of=("self",), no_key=True).select_related("tenant").get(id=policy_id)
    )
    if not (policy.training_enabled and policy.tenant.training_enabled):
        return None
    try:
        config = resolve(policy.config)
    except InvalidInput as error:
        logger.warning("policy %s is not trained: %s", policy.id, error.message)
        return None
    if due(policy, config) is None or _blocked(policy):
        return None
    prune(policy, config)
    trigger = due(policy, config)
    return None if trigger is None else create_run(policy, trigger)


def create_run(policy: Policy, trigger: str) -> TrainingRun | None:
    """Queue a run and announce it, in the caller's transaction; None where the policy has an open one."""
    try:
        with transaction.atomic():
            run = TrainingRun.objects.create(tenant_id=policy.tenant_id, policy=policy, trigger=trigger)
    except IntegrityError:
        return None
    announce(run)
    return run


def announce(run: TrainingRun, *, delay_s: float = 0.0) -> None:
    """Wake a trainer for a queued run, in the caller's transaction."""
    outbox.enqueue(
        task="workers.training.train",
        queue="train",
        tenant_id=run.tenant_id,
        kwargs={"run_id": str(run.id)},
        dedupe_key=f"train:{run.id}",
        delay_s=delay_s,
    )


def due(policy: Policy, config: TrainingConfig) -> str | None:
    """Return what calls for a run now: "threshold" (a whole batch), "clock" (the oldest waited), or None."""
    ready = Sample.objects.filter(policy=policy, state=SampleState.READY)
    if ready.count() >= config.batch_size:
        return "threshold"
    oldest = ready.aggregate(oldest=Min("created_at"))["oldest"]
    if oldest is not None and timezone.now() - oldest >= dt.timedelta(seconds=config.flush_s):
        return "clock"
    return None


def prune(policy: Policy, config: TrainingConfig) -> dict[uuid.UUID, int]:
    """Set aside the waiting samples that are of no use any more; return the staleness of the others."""
    lineage = Lineage(policy.live)
    fresh: dict[uuid.UUID, int] = {}
    other_branch: list[uuid.UUID] = []
    stale: dict[int, list[uuid.UUID]] = {}
    waiting = Sample.objects.select_for_update(skip_locked=True).filter(
        policy=policy, state=SampleState.READY
    )
    for sample_id, version_id in waiting.values_list("id", "version_id"):
        staleness = lineage.staleness(version_id)
        if staleness is None:
            other_branch.append(sample_id)
        elif staleness > config.max_staleness:
            stale.setdefault(staleness, []).append(sample_id)
        else:
            fresh[sample_id] = staleness
    Sample.objects.filter(id__in=other_branch).update(state=SampleState.INELIGIBLE, reason="other branch")
    for staleness, ids in stale.items():
        Sample.objects.filter(id__in=ids).update(
            state=SampleState.DROPPED,
            staleness=staleness,
            reason=f"stale: {staleness} steps, at most {config.max_staleness}",
        )
    return fresh


def pick(policy: Policy, config: TrainingConfig, fresh: dict[uuid.UUID, int]) -> list[Sample]:
    """Return the next batch of the given waiting samples, locked: the oldest first (strict FIFO)."""
    rows = (
        Sample.objects.select_for_update(of=("self",), skip_locked=True)
        .filter(policy=policy, state=SampleState.READY, id__in=fresh)
        .select_related("turn")
        .order_by("created_at", "id")[: config.batch_size]
    )
    return list(rows)


def _blocked(policy: Policy) -> bool:
    """Whether a run is open, a version is on its way to be live, or the last runs failed just now."""
    if TrainingRun.objects.filter(policy=policy, state__in=OPEN_RUN_STATES).exists():
        return True
    if awaits_publishing(policy):
        return True
    recent = (
        TrainingRun.objects.filter(policy=policy).order_by("-created_at").values_list("state", "finished_at")
    )
    failures = 0
    last: dt.datetime | None = None
    for state, finished_at in recent[:10]:
        if state != RunState.FAILED:
            break
        failures += 1
        last = last or finished_at
    if last is None:
        return False
    pause = min(FAILED_PAUSE_S * 2.0 ** (failures - 1), FAILED_PAUSE_MAX_S)
    return timezone.now() < last + dt.timedelta(seconds=pause)


def awaits_publishing(policy: Policy) -> bool:
    """Whether the newest version is neither live nor refused yet."""
    return AdapterVersion.objects.filter(policy=policy, state=VersionState.CREATED).exists()
