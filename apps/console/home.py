"""The console's first page: the four loops at a glance, each with a word of how it is.

Every bound that makes a word is one that something else acts by: turns are late after `LATE_AFTER`, an engine is silent
after `SILENT_S`, a lease lapses, an alert is critical because who wrote it said so.
"""

import datetime as dt
from typing import Any, NamedTuple

from django.db.models import Avg, Count, F, Min, Q, Sum
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.mails import replayable
from apps.accounts.models import Mail, MailState
from apps.adapters.models import AdapterVersion, Policy
from apps.alerts.models import Alert, Delivery, DeliveryState, Severity
from apps.conversations.models import PromptSource, Turn, TurnKind, TurnState
from apps.engines.models import Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.services import SILENT_S
from apps.governance.models import Export, ExportState
from apps.judging.models import Judgement, JudgementState
from apps.learning.accounts import LATE_AFTER
from apps.learning.drift.models import TrainingPause
from apps.learning.models import OPEN_RUN_STATES, RunState, TrainingRun
from apps.learning.selectors import with_ready_counts
from kernel.ids import first_id_at
from kernel.models import OutboxMessage
from kernel.outbox import HELD, QUEUES

_HOUR = dt.timedelta(hours=1)
_DAY = dt.timedelta(days=1)
_REASONS_SHOWN = 5
_LEASES_SHOWN = 20
_MANY = 0.05  # of an hour's requests; fewer may be one client's broken one


class Health(NamedTuple):
    """How a loop is: `well`, `slow` (look when there is time) or `failing` (act), and why."""

    word: str
    why: str


WELL = Health("well", "")


def at_a_glance(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what each loop is doing, and how it is. A constant number of queries."""
    del request
    now = timezone.now()
    return {
        **context,
        "title": "At a glance",
        "serving": _serving(now),
        "judging": _judging(now),
        "training": _training(now),
        "fleet": _fleet(now),
        "outbox": _outbox(now),
        "alerts": _alerts(now),
        "leases": _leases(now),
        "last_runs": TrainingRun.objects.select_related("tenant", "policy", "version")
        .defer("config", "metrics")
        .order_by("-id")[:8],
        "last_versions": AdapterVersion.objects.select_related("tenant", "policy")
        .defer("metrics")
        .order_by("-id")[:8],
    }


def _serving(now: dt.datetime) -> dict[str, Any]:
    recent = Turn.objects.filter(kind=TurnKind.LIVE, id__gte=first_id_at(now - _HOUR))
    counted = recent.aggregate(
        requests=Count("pk"),
        extended=Count("pk", filter=Q(prompt_source=PromptSource.EXTENDED)),
        failed=Count("pk", filter=Q(state=TurnState.FAILED)),
        aborted=Count("pk", filter=Q(state=TurnState.ABORTED)),
        latency_ms=Avg("latency_ms"),
        first_token_ms=Avg("first_token_ms"),
    )
    # a turn goes on with the exact tokens of the one before, but for these
    rendered = (
        recent.filter(prompt_source=PromptSource.RENDERED)
        .values("prompt_reason")
        .annotate(turns=Count("pk"))
        .order_by("-turns", "prompt_reason")[:_REASONS_SHOWN]
    )
    failed, health = counted["failed"], WELL
    if failed:
        word = "failing" if failed > _MANY * counted["requests"] else "slow"
        health = Health(word, f"{failed} of {counted['requests']} failed")
    return {**counted, "rendered": list(rendered), "health": health}


def _judging(now: dt.datetime) -> dict[str, Any]:
    found = Judgement.objects.exclude(state=JudgementState.SETTLED).aggregate(
        pending=Count("pk", filter=Q(state=JudgementState.PENDING)),
        failed=Count("pk", filter=Q(state=JudgementState.FAILED)),
        oldest=Min("created_at", filter=Q(state=JudgementState.PENDING)),
    )
    if found["failed"]:
        health = Health("failing", f"{found['failed']} could not be judged: judge them again")
    elif found["oldest"] is not None and now - found["oldest"] > LATE_AFTER:
        health = Health("slow", f"the oldest has waited for {_minutes(now - found['oldest'])}")
    else:
        health = WELL
    settled = Judgement.objects.filter(settled_at__gte=now - _HOUR).count()
    return {**found, "settled": settled, "health": health}


def _training(now: dt.datetime) -> dict[str, Any]:
    ended = TrainingRun.objects.filter(finished_at__gte=now - _HOUR).aggregate(
        finished=Count("pk"), failed=Count("pk", filter=Q(state=RunState.FAILED))
    )
    paused = TrainingPause.objects.filter(resumed_at=None).count()
    if ended["failed"]:
        health = Health("failing", f"{ended['failed']} of {ended['finished']} runs failed")
    elif paused:
        health = Health("slow", f"{paused} paused until somebody resumes them")
    else:
        health = WELL
    return {
        **ended,
        "open": TrainingRun.objects.filter(state__in=OPEN_RUN_STATES).count(),
        "ready": with_ready_counts(Policy.objects.all()).aggregate(n=Sum("n_ready"))["n"] or 0,
        "paused": paused,
        "health": health,
    }


def _fleet(now: dt.datetime) -> dict[str, Any]:
    # one that is drained, or was configured once, is none that should be ready
    heard = Q(seen_at__gte=now - dt.timedelta(seconds=SILENT_S))
    found = Engine.objects.exclude(state=EngineState.DRAINING).aggregate(
        ready=Count("pk", filter=Q(state=EngineState.READY)),
        heard=Count("pk", filter=heard & Q(state=EngineState.READY)),
        all=Count("pk"),
    )
    loaded = LoadedAdapter.objects.filter(state=LoadState.PROBED, engine__state=EngineState.READY)
    if not found["heard"]:
        health = Health("failing", f"none has answered within {SILENT_S:.0f} s: nobody is served")
    elif found["heard"] < found["all"]:
        health = Health("slow", f"{found['all'] - found['heard']} do not answer")
    else:
        health = WELL
    return {**found, "loaded": loaded.filter(boot_id=F("engine__boot_id")).count(), "health": health}


def _outbox(now: dt.datetime) -> dict[str, Any]:
    """Return what waits to be sent, by queue. What a tenant's pause holds, as for the relay, is counted apart."""
    unsent = OutboxMessage.objects.filter(sent_at__isnull=True)
    due = Q(available_at__lte=now) & ~HELD
    counted: dict[str, dict[str, Any]] = {
        row["queue"]: {**row}
        for row in unsent.values("queue").annotate(
            waiting=Count("pk", filter=due),
            oldest=Min("available_at", filter=due),
            later=Count("pk", filter=Q(available_at__gt=now) & ~HELD),
            paused=Count("pk", filter=HELD),
        )
    }
    queues: list[dict[str, Any]] = []
    for queue in QUEUES:
        row = counted.get(queue) or {"waiting": 0, "oldest": None, "later": 0, "paused": 0}
        lag = dt.timedelta() if row["oldest"] is None else now - row["oldest"]
        health = Health("failing", f"the oldest has waited for {_minutes(lag)}") if lag > LATE_AFTER else WELL
        queues.append({**row, "queue": queue, "lag_s": lag.total_seconds(), "health": health})
    worst = next((one for one in queues if one["health"] != WELL), None)
    return {
        "queues": queues,
        "waiting": sum(one["waiting"] for one in queues),
        "health": WELL if worst is None else Health("failing", f"{worst['queue']}: {worst['health'].why}"),
    }


def _alerts(now: dt.datetime) -> dict[str, Any]:
    found = Alert.objects.filter(created_at__gte=now - _DAY).aggregate(
        critical=Count("pk", filter=Q(severity=Severity.CRITICAL)),
        warning=Count("pk", filter=Q(severity=Severity.WARNING)),
    )
    dead = Delivery.objects.filter(state=DeliveryState.DEAD).count()
    lost = Mail.objects.filter(state=MailState.DEAD).aggregate(
        dead_mails=Count("pk"), replayable=Count("pk", filter=replayable(now))
    )
    waits = {
        "warnings within a day": found["warning"],
        "dead deliveries": dead,
        "dead mails to replay": lost["replayable"],
    }
    if found["critical"]:
        health = Health("failing", f"{found['critical']} critical within a day")
    elif any(waits.values()):
        health = Health("slow", ", ".join(f"{number} {what}" for what, number in waits.items() if number))
    else:
        health = WELL
    return {**found, **lost, "dead": dead, "health": health}


def _leases(now: dt.datetime) -> list[dict[str, Any]]:
    """Return who holds what, those that lapse first before the others."""
    runs = TrainingRun.objects.filter(state=RunState.RUNNING).select_related("tenant", "policy")
    exports = Export.objects.filter(state=ExportState.RUNNING).select_related("tenant")
    held: list[tuple[str, Any, str]] = [
        *(("run", row, str(row.policy)) for row in runs.order_by("lease_until")[:_LEASES_SHOWN]),
        *(("export", row, "") for row in exports.order_by("lease_until")[:_LEASES_SHOWN]),
    ]
    return [
        {
            "kind": kind,
            "row": row,
            "of": of,
            "until": row.lease_until,
            "health": WELL
            if row.lease_until is not None and row.lease_until >= now
            else Health("failing", "lapsed: whoever is next takes it over"),
        }
        for kind, row, of in held
    ]


def _minutes(span: dt.timedelta) -> str:
    return f"{span.total_seconds() / 60:.0f} minutes"
