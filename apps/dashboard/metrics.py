"""What a tenant's traffic looked like over a stretch of time, from the turns themselves."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.adapters.models import PointerMove

RANGES = {"1d": (24, 30), "7d": (7 * 24, 180), "30d": (30 * 24, 720)}
"""Hours back, and the minutes that one point of a chart stands for."""

_SUMS = """
    SELECT count(*),
           count(*) FILTER (WHERE state = 'failed'),
           coalesce(sum((usage->>'prompt_tokens')::bigint), 0),
           coalesce(sum((usage->>'completion_tokens')::bigint), 0),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_token_ms),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms)
      FROM conversations_turn
     WHERE tenant_id = %s AND created_at >= %s AND created_at < %s AND kind IN ('live', 'rollout')
"""
_POINTS = """
    SELECT date_bin(%s, created_at, %s) AS point,
           count(*),
           count(*) FILTER (WHERE state = 'failed'),
           coalesce(sum((usage->>'completion_tokens')::bigint), 0),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY first_token_ms),
           percentile_cont(0.95) WITHIN GROUP (ORDER BY first_token_ms)
      FROM conversations_turn
     WHERE tenant_id = %s AND created_at >= %s AND created_at < %s AND kind IN ('live', 'rollout')
     GROUP BY point ORDER BY point
"""
_REWARDS = """
    SELECT date_bin(%s, turn.created_at, %s) AS point, avg(sample.reward), count(*)
      FROM learning_sample AS sample JOIN conversations_turn AS turn ON turn.id = sample.turn_id
     WHERE sample.tenant_id = %s AND sample.reward IS NOT NULL
       AND turn.created_at >= %s AND turn.created_at < %s
     GROUP BY point ORDER BY point
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums of a stretch, and its points in time (POSIX seconds) for the charts."""

    requests: int
    failed: int
    prompt_tokens: int
    reply_tokens: int
    first_token_ms: tuple[float | None, float | None]
    """Median and 95th percentile, milliseconds."""
    latency_ms: tuple[float | None, float | None]
    points: list[dict[str, Any]]
    rewards: list[dict[str, Any]]
    moves: list[dict[str, Any]]
    """When which version became live."""

    def chart(self) -> dict[str, Any]:
        """Return what the page's charts draw."""
        return {"points": self.points, "rewards": self.rewards, "moves": self.moves}


def traffic(tenant_id: uuid.UUID, span: str, now: dt.datetime | None = None) -> Traffic:
    """Return the tenant's traffic of the last `span` (a key of RANGES). Five queries; needs the tenant's scope."""
    hours, minutes = RANGES[span]
    until = now or timezone.now()
    since, step = until - dt.timedelta(hours=hours), f"{minutes} minutes"
    origin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, [tenant_id, since, until])
        requests, failed, prompt, reply, first, latency = cursor.fetchone()
        cursor.execute(_POINTS, [step, origin, tenant_id, since, until])
        points = [
            {"t": at.timestamp(), "requests": n, "failed": bad, "tokens": int(tokens), "p50": p50, "p95": p95}
            for at, n, bad, tokens, p50, p95 in cursor.fetchall()
        ]
        cursor.execute(_REWARDS, [step, origin, tenant_id, since, until])
        rewards = [{"t": at.timestamp(), "reward": float(mean), "n": n} for at, mean, n in cursor.fetchall()]
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
        requests=requests,
        failed=failed,
        prompt_tokens=int(prompt),
        reply_tokens=int(reply),
        first_token_ms=_pair(first),
        latency_ms=_pair(latency),
        points=points,
        rewards=rewards,
        moves=moves,
    )


def _pair(values: list[float | None] | None) -> tuple[float | None, float | None]:
    return (values[0], values[1]) if values else (None, None)
