"""The console's first page: the four loops at a glance."""

import datetime as dt
from typing import Any

from django.db.models import Avg, Count, F, Min, Q
from django.http import HttpRequest
from django.utils import timezone

from apps.adapters.models import AdapterVersion
from apps.conversations.models import PromptSource, Turn, TurnKind, TurnState
from apps.engines.models import Engine, EngineState, LoadedAdapter, LoadState
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, SampleState, TrainingRun
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
        .order_by("-created_at")[:8],
        "last_versions": AdapterVersion.objects.select_related("tenant", "policy")
        .defer("metrics")
        .order_by("-created_at")[:8],
    }


def _serving(now: dt.datetime) -> dict[str, Any]:
    recent = Turn.objects.filter(kind=TurnKind.LIVE, created_at__gte=now - _HOUR)
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
    return Judgement.objects.aggregate(
        pending=Count("pk", filter=Q(state=JudgementState.PENDING)),
        failed=Count("pk", filter=Q(state=JudgementState.FAILED)),
        settled=Count("pk", filter=Q(settled_at__gte=now - _HOUR)),
    )


def _training(now: dt.datetime) -> dict[str, Any]:
    runs = TrainingRun.objects.aggregate(
        open=Count("pk", filter=Q(state__in=OPEN_RUN_STATES)),
        finished=Count("pk", filter=Q(finished_at__gte=now - _HOUR)),
        failed=Count("pk", filter=Q(state=RunState.FAILED, finished_at__gte=now - _HOUR)),
    )
    return {**runs, "ready": Sample.objects.filter(state=SampleState.READY).count()}


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
