"""What a tenant's traffic looked like over a stretch of time."""

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.adapters.models import PointerMove
from apps.dashboard.rollups.stretches import begin
from apps.dashboard.rollups.sums import Sums, sums_of

RANGES = {"1d": (24, 30), "7d": (7 * 24, 180), "30d": (30 * 24, 720)}
"""Hours back, and the minutes that one point of a chart stands for: a level of the rollups."""
SHARES = (0.5, 0.95)
MOST_MOVES = 100
"""Marks of a chart. Of more, each point has its last."""
_LAST_OF_EACH_POINT = """
    SELECT move.created_at, version.number, policy.name
      FROM generate_series(%(first)s, %(until)s, %(step)s) AS point (at)
     CROSS JOIN LATERAL (
           SELECT created_at, to_version_id, policy_id FROM adapters_pointermove
            WHERE tenant_id = %(tenant)s AND created_at >= greatest(point.at, %(since)s)
              AND created_at < least(point.at + %(step)s, %(until)s)
            ORDER BY created_at DESC LIMIT 1) AS move
      JOIN adapters_policy AS policy ON policy.id = move.policy_id
      LEFT JOIN adapters_adapterversion AS version ON version.id = move.to_version_id
     ORDER BY move.created_at DESC
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums of a stretch, and its points in time (POSIX seconds) for the charts."""

    requests: int
    failed: int
    prompt_tokens: int
    reply_tokens: int
    first_token_ms: tuple[float | None, ...]
    """As SHARES: median and 95th percentile, milliseconds."""
    latency_ms: tuple[float | None, ...]
    points: list[dict[str, Any]]
    rewards: list[dict[str, Any]]


def moves(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> list[dict[str, Any]]:
    """Return when which version became live within the last `span`, oldest first. Needs the tenant's scope.

    All of them up to `MOST_MOVES`; where there are more, the last one of each point of the charts.
    """
    hours, minutes = RANGES[span]
    until = now or timezone.now()
    since = until - dt.timedelta(hours=hours)
    found = PointerMove.objects.filter(created_at__gte=since, created_at__lt=until).order_by("-created_at")
    marks = list(found.values_list("created_at", "to_version__number", "policy__name")[: MOST_MOVES + 1])
    if len(marks) > MOST_MOVES:
        asked: dict[str, Any] = {
            "tenant": tenant_id,
            "first": begin(since, minutes),
            "since": since,
            "until": until,
            "step": dt.timedelta(minutes=minutes),
        }
        with connection.cursor() as cursor:
            cursor.execute(_LAST_OF_EACH_POINT, asked)
            marks = cursor.fetchall()
    return [
        {"t": at.timestamp(), "version": number or 0, "policy": policy}
        for at, number, policy in reversed(marks)
    ]


def traffic(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> Traffic:
    """Return the tenant's traffic of the last `span` (a key of RANGES). At most five queries; needs the tenant's scope.

    Sums are exact; percentiles are within `rollups.histogram.ERROR` of themselves.
    """
    found, total = _sums(tenant_id, span, now), Sums()
    for sums in found.values():
        total.add(sums)
    rewards = [
        {"t": float(at), "reward": sums.reward / sums.rewarded, "n": sums.rewarded}
        for at, sums in found.items()
        if sums.rewarded
    ]
    return Traffic(
        requests=total.requests,
        failed=total.failed,
        prompt_tokens=total.prompt_tokens,
        reply_tokens=total.reply_tokens,
        first_token_ms=total.first_token_ms.percentiles(*SHARES),
        latency_ms=total.latency_ms.percentiles(*SHARES),
        points=_points(found),
        rewards=rewards,
    )


def points(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> list[dict[str, Any]]:
    """Return the points in time of `traffic` alone."""
    return _points(_sums(tenant_id, span, now))


def _sums(tenant_id: uuid.UUID, span: str, now: dt.datetime | None) -> dict[int, Sums]:
    hours, minutes = RANGES[span]
    until = now or timezone.now()
    return sums_of(tenant_id, until - dt.timedelta(hours=hours), until, minutes)


def _points(found: Mapping[int, Sums]) -> list[dict[str, Any]]:
    return [
        {
            "t": float(at),
            "requests": sums.requests,
            "failed": sums.failed,
            "tokens": sums.reply_tokens,
            **dict(zip(("p50", "p95"), sums.first_token_ms.percentiles(*SHARES), strict=True)),
        }
        for at, sums in found.items()
        if sums.requests
    ]
