"""Take readings: the first gauge in the transaction that ends a step,
the others by a message and by the clock."""

import datetime as dt
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.conversations.models import Turn, TurnKind
from apps.learning.drift import crossings
from apps.learning.drift.bounds import Bound, resolve
from apps.learning.drift.deploy import WEEK, measure_sampling, measure_topics
from apps.learning.drift.models import Crossing, DriftReading, Gauge
from apps.learning.drift.rollout import measure_step
from apps.learning.drift.selection import measure_selection
from apps.learning.models import OPEN_RUN_STATES, RunState, TrainingRun
from kernel import outbox
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope

logger = logging.getLogger(__name__)


def after_step(
    run: TrainingRun, *, policy: Policy, outcomes: Mapping[str, Mapping[str, Any]]
) -> list[Crossing]:
    """Read the first gauge of a step that has just ended and act on it, in the commit's own transaction.

    The caller has run and policy locked. What is past its bound is added to the run's reason, in words.
    """
    if run.state in (*OPEN_RUN_STATES, RunState.CANCELLED) or not run.metrics:
        return []
    values, detail = measure_step(policy=policy, metrics=run.metrics, outcomes=outcomes)
    made: AdapterVersion | None = run.version
    bounds = bounds_of(policy)
    reading = DriftReading.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        gauge=Gauge.ROLLOUT_LEARNER,
        run=run,
        fence=run.fence,
        version=made or policy.live,
        values=values,
        detail=detail,
        bounds=_as_they_hold(bounds, Gauge.ROLLOUT_LEARNER),
    )
    words = crossings.outside(reading, bounds)
    opened = crossings.judge(
        reading,
        policy=policy,
        bounds=bounds,
        made=made if made is not None and made.state == VersionState.CREATED else None,
    )
    if words:
        run.reason = "; ".join(part for part in (run.reason, *words) if part)[:500]
        run.save(update_fields=["reason"])
    outbox.enqueue(
        task="workers.drift.measure",
        queue="ops",
        tenant_id=policy.tenant_id,
        kwargs={"policy_id": str(policy.pk), "run_id": str(run.pk)},
        dedupe_key=f"drift:{run.pk}",
    )
    return opened


def measure(
    *, policy_id: uuid.UUID, run_id: uuid.UUID | None, until: dt.datetime | None = None
) -> list[Crossing]:
    """Read the second and third gauge over the week before a run's end, or before `until`; once for each.

    Must run in the tenant's scope. What was read before is not read again.
    """
    policy = Policy.objects.select_related("live").filter(pk=policy_id).first()
    run = TrainingRun.objects.filter(pk=run_id).first() if run_id is not None else None
    if policy is None or (run_id is not None and run is None):
        return []
    end = (run.finished_at if run else until) or timezone.now()
    since = end - WEEK
    sampled, how = measure_sampling(policy, since=since, until=end)
    if run is None:  # topics are of weeks: at every step they would be the same week again
        shifted, of_what = measure_topics(policy, until=end)
        sampled, how = {**sampled, **shifted}, {**how, **of_what}
    selected, whom = measure_selection(policy, since=since, until=end)
    opened = []
    with transaction.atomic():
        policy = (
            Policy.objects.select_for_update(of=("self",), no_key=True)
            .select_related("live")
            .get(pk=policy_id)
        )
        bounds = bounds_of(policy)
        for gauge, values, detail in (
            (Gauge.ROLLOUT_DEPLOY, sampled, how),
            (Gauge.LEARNER_DEPLOY, selected, whom),
        ):
            same = DriftReading.objects.filter(policy=policy, gauge=gauge)
            same = same.filter(run=run, fence=run.fence) if run else same.filter(run=None, until=end)
            if same.exists():
                continue
            reading = DriftReading.objects.create(
                tenant_id=policy.tenant_id,
                policy=policy,
                gauge=gauge,
                run=run,
                fence=run.fence if run else 0,
                version=policy.live,
                since=since,
                until=end,
                values=values,
                detail=detail,
                bounds=_as_they_hold(bounds, gauge),
            )
            opened += crossings.judge(reading, policy=policy, bounds=bounds, made=None)
    return opened


def last_week() -> dt.datetime:
    """Return the end of the last whole week: Monday 00:00 UTC."""
    today = timezone.now().astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - dt.timedelta(days=today.weekday())


def when_first() -> str:
    """Return, in words, when a policy that has no reading yet gets its first ones."""
    monday = last_week() + WEEK
    return (
        "The first gauge is read when a training step ends, the other two right after it; without a step those two are "
        f"read once a week, next after {monday:%Y-%m-%d %H:%M} UTC, if people have talked to the policy."
    )


def ask_for_weeks(*, limit: int) -> int:
    """Announce the weekly readings that are not there yet,
    of policies in scope that people talked to; return how many.

    Must run under `system_scope`.
    """
    end = last_week()
    there = DriftReading.objects.filter(
        policy=OuterRef("pk"), run=None, until=end, gauge=Gauge.LEARNER_DEPLOY
    )
    talked = Turn.objects.filter(
        policy=OuterRef("pk"), kind=TurnKind.LIVE, created_at__gte=end - WEEK, created_at__lt=end
    )
    due = list(
        Policy.objects.filter(~Exists(there), Exists(talked))
        .order_by("pk")
        .values_list("tenant_id", "pk")[:limit]
    )
    for tenant_id, policy_id in due:
        with tenant_scope(tenant_id), transaction.atomic():
            outbox.enqueue(
                task="workers.drift.measure",
                queue="ops",
                tenant_id=tenant_id,
                kwargs={"policy_id": str(policy_id), "until": end.isoformat()},
                dedupe_key=f"drift-week:{policy_id}",
            )
    return len(due)


def bounds_of(policy: Policy) -> dict[str, Bound]:
    """Return the bounds that hold for a policy; the defaults where its own are not valid."""
    try:
        return resolve(policy.config)
    except InvalidInput as error:
        logger.warning("policy %s is held against the default drift bounds: %s", policy.pk, error.message)
        return resolve({})


def _as_they_hold(bounds: Mapping[str, Bound], gauge: Gauge) -> dict[str, list[Any]]:
    return {measure: [bound.limit, bound.action] for measure, bound in bounds.items() if bound.gauge == gauge}
