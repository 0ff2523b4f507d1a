"""What a tenant's traffic looked like over a stretch of time."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.adapters.models import PointerMove
from apps.dashboard.rollups.stretches import LEVELS, Stretch, begin
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
            WHERE tenant_id = %(tenant)s AND (%(policy)s::uuid IS NULL OR policy_id = %(policy)s)
              AND created_at >= greatest(point.at, %(since)s)
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


def looked_at(span: str, now: dt.datetime | None = None) -> Stretch:
    """Return which time a range (a key of RANGES) is of: until now, from the half-hour on in which it begins.

    Whole half-hours are kept, so no turn has to be read for the beginning.
    """
    until = now or timezone.now()
    return Stretch(begin(until - dt.timedelta(hours=RANGES[span][0]), LEVELS[0]), until)


def moves(
    tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None, policy_id: uuid.UUID | None = None
) -> list[dict[str, Any]]:
    """Return when which version became live within the last `span`, oldest first. Needs the tenant's scope.

    Of one policy, or of all. All of them up to `MOST_MOVES`; where there are more, the last one of each point
    of the charts.
    """
    minutes = RANGES[span][1]
    since, until = looked_at(span, now)
    found = PointerMove.objects.filter(created_at__gte=since, created_at__lt=until).order_by("-created_at")
    if policy_id is not None:
        found = found.filter(policy_id=policy_id)
    marks = list(found.values_list("created_at", "to_version__number", "policy__name")[: MOST_MOVES + 1])
    if len(marks) > MOST_MOVES:
        asked: dict[str, Any] = {
            "tenant": tenant_id,
            "policy": policy_id,
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


def traffic(
    tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None, policy_id: uuid.UUID | None = None
) -> Traffic:
    """Return the tenant's traffic of the last `span` (a key of RANGES).

    At most five queries; needs the tenant's scope.

    Of one policy, or of all. Sums are exact; percentiles are within `rollups.histogram.ERROR` of themselves.
    """
    found, total = _sums(tenant_id, span, now, policy_id), Sums()
    for sums in found.values():
        total.add(sums)
    points = [_point(at, sums) for at, sums in found.items()]
    return Traffic(
        requests=total.requests,
        failed=total.failed,
        prompt_tokens=total.prompt_tokens,
        reply_tokens=total.reply_tokens,
        first_token_ms=total.first_token_ms.percentiles(*SHARES),
        latency_ms=total.latency_ms.percentiles(*SHARES),
        points=[point for point in points if point["requests"]],
        rewards=[{name: point[name] for name in ("t", "reward", "n")} for point in points if point["n"]],
    )


def points(
    tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None, policy_id: uuid.UUID | None = None
) -> list[dict[str, Any]]:
    """Return the points in time of `traffic` alone: those with a request and those with a reward."""
    found = _sums(tenant_id, span, now, policy_id)
    return [_point(at, sums) for at, sums in found.items() if sums.requests or sums.rewarded]


def _sums(
    tenant_id: uuid.UUID, span: str, now: dt.datetime | None, policy_id: uuid.UUID | None
) -> dict[int, Sums]:
    return sums_of(tenant_id, *looked_at(span, now), RANGES[span][1], policy_id)


def _point(at: int, sums: Sums) -> dict[str, Any]:
    """Return what is shown of a point, by name: `t` is its beginning, POSIX seconds."""
    first, last = (one.percentiles(*SHARES) for one in (sums.first_token_ms, sums.latency_ms))
    return {
        "t": float(at),
        "requests": sums.requests,
        "failed": sums.failed,
        "prompt": sums.prompt_tokens,
        "tokens": sums.reply_tokens,
        **dict(zip(("p50", "p95"), first, strict=True)),
        **dict(zip(("last50", "last95"), last, strict=True)),
        "reward": sums.reward / sums.rewarded if sums.rewarded else None,
        "n": sums.rewarded,
    }
