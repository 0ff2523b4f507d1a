"""The console's first page: the four loops at a glance."""

import datetime as dt
from typing import Any

from django.db.models import Avg, Count, F, Min, Q, Sum
from django.http import HttpRequest
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import PromptSource, Turn, TurnKind, TurnState
from apps.engines.models import Engine, EngineState, LoadedAdapter, LoadState
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import OPEN_RUN_STATES, RunState, TrainingRun
from apps.learning.selectors import with_ready_counts
from kernel.ids import first_id_at
from kernel.models import OutboxMessage

_HOUR = dt.timedelta(hours=1)
_REASONS_SHOWN = 5


def at_a_glance(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what each loop is doing. A constant number of queries."""
    del request
    now = timezone.now()
    return {
        **context,
        "title": "At a glance",
        "serving": _serving(now),
        "judging": _judging(now),
        "training": _training(now),
        "fleet": _fleet(),
        "outbox": _outbox(now),
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
    return {**counted, "rendered": list(rendered)}


def _judging(now: dt.datetime) -> dict[str, Any]:
    open_or_dead = Judgement.objects.exclude(state=JudgementState.SETTLED).aggregate(
        pending=Count("pk", filter=Q(state=JudgementState.PENDING)),
        failed=Count("pk", filter=Q(state=JudgementState.FAILED)),
    )
    return {**open_or_dead, "settled": Judgement.objects.filter(settled_at__gte=now - _HOUR).count()}


def _training(now: dt.datetime) -> dict[str, Any]:
    ended = TrainingRun.objects.filter(finished_at__gte=now - _HOUR).aggregate(
        finished=Count("pk"), failed=Count("pk", filter=Q(state=RunState.FAILED))
    )
    return {
        **ended,
        "open": TrainingRun.objects.filter(state__in=OPEN_RUN_STATES).count(),
        "ready": with_ready_counts(Policy.objects.all()).aggregate(n=Sum("n_ready"))["n"] or 0,
    }


def _fleet() -> dict[str, Any]:
    # one that is drained, or was configured once, is none that should be ready
    engines = Engine.objects.exclude(state=EngineState.DRAINING).aggregate(
        ready=Count("pk", filter=Q(state=EngineState.READY)), all=Count("pk")
    )
    loaded = LoadedAdapter.objects.filter(state=LoadState.PROBED, engine__state=EngineState.READY)
    return {**engines, "loaded": loaded.filter(boot_id=F("engine__boot_id")).count()}


def _outbox(now: dt.datetime) -> dict[str, Any]:
    due = OutboxMessage.objects.filter(sent_at__isnull=True, available_at__lte=now)
    waiting = due.aggregate(count=Count("pk"), oldest=Min("available_at"))
    oldest = waiting["oldest"]
    return {
        "waiting": waiting["count"],
        "lag_s": 0.0 if oldest is None else (now - oldest).total_seconds(),
        "later": OutboxMessage.objects.filter(sent_at__isnull=True, available_at__gt=now).count(),
    }
