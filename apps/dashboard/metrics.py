"""What a tenant's traffic looked like over a stretch of time."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from apps.adapters.models import PointerMove
from apps.dashboard.rollups.sums import Sums, sums_of

RANGES = {"1d": (24, 30), "7d": (7 * 24, 180), "30d": (30 * 24, 720)}
"""Hours back, and the minutes that one point of a chart stands for: a level of the rollups."""
SHARES = (0.5, 0.95)
MOST_MOVES = 500


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


def moves(span: str, now: dt.datetime | None = None) -> list[dict[str, Any]]:
    """Return when which version became live within the last `span`: the newest, oldest first. Needs the tenant's scope."""
    since = (now or timezone.now()) - dt.timedelta(hours=RANGES[span][0])
    found = PointerMove.objects.filter(created_at__gte=since).order_by("-created_at")
    marks = found.values_list("created_at", "to_version__number", "policy__name")[:MOST_MOVES]
    return [
        {"t": at.timestamp(), "version": number or 0, "policy": policy}
        for at, number, policy in reversed(list(marks))
    ]


def traffic(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> Traffic:
    """Return the tenant's traffic of the last `span` (a key of RANGES). At most five queries; needs the tenant's scope.

    Sums are exact; percentiles are within `rollups.histogram.ERROR` of themselves.
    """
    hours, minutes = RANGES[span]
    until = now or timezone.now()
    since = until - dt.timedelta(hours=hours)
    found, total = sums_of(tenant_id, since, until, minutes), Sums()
    for sums in found.values():
        total.add(sums)
    points = [
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
        points=points,
        rewards=rewards,
    )
