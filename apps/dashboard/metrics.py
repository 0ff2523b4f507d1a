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
    moves: list[dict[str, Any]]
    """When which version became live."""

    def chart(self) -> dict[str, Any]:
        """Return what the page's charts draw."""
        return {"points": self.points, "rewards": self.rewards, "moves": self.moves}


def traffic(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> Traffic:
    """Return the tenant's traffic of the last `span` (a key of RANGES). At most six queries; needs the tenant's scope.

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
            "t": at.timestamp(),
            "requests": sums.requests,
            "failed": sums.failed,
            "tokens": sums.reply_tokens,
            **dict(zip(("p50", "p95"), sums.first_token_ms.percentiles(*SHARES), strict=True)),
        }
        for at, sums in found.items()
        if sums.requests
    ]
    rewards = [
        {"t": at.timestamp(), "reward": sums.reward / sums.rewarded, "n": sums.rewarded}
        for at, sums in found.items()
        if sums.rewarded
    ]
    moves = [
        {
            "t": move.created_at.timestamp(),
            "version": move.to_version.number if move.to_version else 0,
            "policy": move.policy.name,
        }
        for move in PointerMove.objects.filter(created_at__gte=since, created_at__lt=until)
        .select_related("policy", "to_version")
        .order_by("created_at")[:500]
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
        moves=moves,
    )
