"""Sums of a stretch of time by points: from the largest stretches that are kept,
and of the rest from the turns."""

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import orjson
from django.db import connection

from apps.dashboard.rollups.histogram import Histogram, bucket_sql
from apps.dashboard.rollups.stretches import LEVELS, ORIGIN, Stretch, stretch, without

# OFFSET 0: each gap is read by an index of time, however many gaps there are
_GAPS = "unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) AS gap (since, until) CROSS JOIN LATERAL"
_POINT = "date_bin(make_interval(mins => %(minutes)s), created_at, %(origin)s)"
_KEPT = f"""
    SELECT extract(epoch FROM begins_at)::bigint, requests, failed, prompt_tokens, reply_tokens,
           first_token_ms, latency_ms, reward, rewarded
      FROM {_GAPS} (
           SELECT * FROM dashboard_turnrollup
            WHERE tenant_id = %(tenant)s AND minutes = %(minutes)s AND of_policy IS NULL
              AND begins_at >= gap.since AND begins_at <= gap.until - make_interval(mins => %(minutes)s)
           OFFSET 0) AS kept
"""  # noqa: S608  # our own words
# a stretch that is kept in which the policy has nothing is a row of NULLs
_KEPT_OF_POLICY = f"""
    SELECT extract(epoch FROM kept.begins_at)::bigint, one.requests, one.failed, one.prompt_tokens, one.reply_tokens,
           one.first_token_ms, one.latency_ms, one.reward, one.rewarded
      FROM {_GAPS} (
           SELECT begins_at FROM dashboard_turnrollup
            WHERE tenant_id = %(tenant)s AND minutes = %(minutes)s AND of_policy IS NULL
              AND begins_at >= gap.since AND begins_at <= gap.until - make_interval(mins => %(minutes)s)
           OFFSET 0) AS kept
      LEFT JOIN dashboard_turnrollup AS one
             ON one.tenant_id = %(tenant)s AND one.begins_at = kept.begins_at AND one.minutes = %(minutes)s
            AND one.of_policy = %(policy)s
"""  # noqa: S608
_TURNS = f"""
    WITH one AS (
        SELECT {_POINT} AS point, state = 'failed' AS failed,
               (usage->>'prompt_tokens')::bigint AS prompt, (usage->>'completion_tokens')::bigint AS reply,
               {bucket_sql("first_token_ms")} AS first, {bucket_sql("latency_ms")} AS latency
          FROM {_GAPS} (
               SELECT created_at, state, usage, first_token_ms, latency_ms FROM conversations_turn
                WHERE tenant_id = %(tenant)s AND created_at >= gap.since AND created_at < gap.until
                  AND kind IN ('live', 'rollout') AND (%(policy)s::uuid IS NULL OR policy_id = %(policy)s)
               OFFSET 0) AS turn),
    counted AS (
        SELECT point, first, latency, GROUPING(first) = 0 AS of_first, GROUPING(latency) = 0 AS of_latency,
               count(*) AS n, count(*) FILTER (WHERE failed) AS failed, sum(prompt) AS prompt, sum(reply) AS reply
          FROM one GROUP BY GROUPING SETS ((point), (point, first), (point, latency)))
    SELECT extract(epoch FROM point)::bigint,
           max(n) FILTER (WHERE NOT of_first AND NOT of_latency),
           max(failed) FILTER (WHERE NOT of_first AND NOT of_latency),
           coalesce(max(prompt) FILTER (WHERE NOT of_first AND NOT of_latency), 0)::bigint,
           coalesce(max(reply) FILTER (WHERE NOT of_first AND NOT of_latency), 0)::bigint,
           coalesce(jsonb_object_agg(first, n) FILTER (WHERE of_first AND first IS NOT NULL), '{{}}'),
           coalesce(jsonb_object_agg(latency, n) FILTER (WHERE of_latency AND latency IS NOT NULL), '{{}}')
      FROM counted GROUP BY point
"""  # noqa: S608
_REWARDS = f"""
    SELECT extract(epoch FROM {_POINT})::bigint AS point, sum(reward), count(*)
      FROM {_GAPS} (
           SELECT turn.created_at, sample.reward
             FROM conversations_turn AS turn JOIN learning_sample AS sample ON sample.turn_id = turn.id
            WHERE turn.tenant_id = %(tenant)s AND turn.created_at >= gap.since AND turn.created_at < gap.until
              AND sample.reward IS NOT NULL AND (%(policy)s::uuid IS NULL OR turn.policy_id = %(policy)s)
           OFFSET 0) AS said
     GROUP BY point
"""  # noqa: S608


@dataclass(slots=True)
class Sums:
    """What the turns of some stretches sum up to: what clients asked, and what was said of any turn."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    first_token_ms: Histogram = field(default_factory=Histogram)
    latency_ms: Histogram = field(default_factory=Histogram)
    reward: float = 0.0
    """The sum over `rewarded` samples."""
    rewarded: int = 0

    def add(self, other: "Sums") -> None:
        """Sum up what another one holds, too."""
        self.requests += other.requests
        self.failed += other.failed
        self.prompt_tokens += other.prompt_tokens
        self.reply_tokens += other.reply_tokens
        self.reward += other.reward
        self.rewarded += other.rewarded
        self.first_token_ms.add(other.first_token_ms)
        self.latency_ms.add(other.latency_ms)


def sums_of(
    tenant_id: uuid.UUID,
    since: dt.datetime,
    until: dt.datetime,
    minutes: int,
    policy_id: uuid.UUID | None = None,
) -> dict[int, Sums]:
    """Return the sums of a stretch by points of `minutes` (one of LEVELS), in order of time;
    empty points are left out.

    Of the turns of one policy, or of all.

    A point is named by its beginning, POSIX seconds. A query for each level up to that and two for what is in
    none. Needs the tenant's scope. Each stretch is as it was at one moment of the call: one that is thrown
    away meanwhile was right when it was read.
    """
    points: dict[int, Sums] = defaultdict(Sums)
    gaps = [Stretch(since, until)]
    with connection.cursor() as cursor:
        for level in sorted((one for one in LEVELS if one <= minutes), reverse=True):
            cursor.execute(
                _KEPT if policy_id is None else _KEPT_OF_POLICY, _asked(tenant_id, gaps, level, policy_id)
            )
            kept = sorted(cursor.fetchall(), key=itemgetter(0))
            for begins, *figures in kept:
                if figures[0] is not None:
                    points[begins - begins % (60 * minutes)].add(_sums(Histogram.read, *figures))
            taken = (dt.datetime.fromtimestamp(begins, dt.UTC) for begins, *_ in kept)
            gaps = without(gaps, [stretch(begins, level) for begins in taken])
        asked = _asked(tenant_id, gaps, minutes, policy_id)
        cursor.execute(_TURNS, asked)
        for point, *figures in cursor.fetchall():
            points[point].add(_sums(Histogram.counted, *figures))
        cursor.execute(_REWARDS, asked)
        for point, reward, rewarded in cursor.fetchall():
            points[point].add(Sums(reward=reward, rewarded=rewarded))
    return dict(sorted(points.items()))


def _asked(
    tenant_id: uuid.UUID, gaps: Sequence[Stretch], minutes: int, policy_id: uuid.UUID | None
) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "policy": policy_id,
        "minutes": minutes,
        "origin": ORIGIN,
        "since": [gap.since for gap in gaps],
        "until": [gap.until for gap in gaps],
    }


def _sums(read: Callable[[Any], Histogram], *figures: Any) -> Sums:
    """Return the sums of a row: the fields in their order, as far as it has them,
    histograms as JSON that `read` reads."""
    requests, failed, prompt, reply, first, latency, *rewards = figures
    durations = read(orjson.loads(first)), read(orjson.loads(latency))
    return Sums(requests, failed, prompt, reply, *durations, *rewards)
