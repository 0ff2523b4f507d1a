"""Sums of a stretch of time by points: from the largest stretches that are kept, and of the rest from the turns."""

import datetime as dt
import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from apps.dashboard.rollups.histogram import Histogram, bucket_sql
from apps.dashboard.rollups.stretches import LEVELS, ORIGIN, Stretch, begin, stretch, without

_GAPS = "unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) AS gap (since, until)"
_KEPT = f"""
    SELECT kept.begins_at, kept.requests, kept.failed, kept.prompt_tokens, kept.reply_tokens,
           kept.reward, kept.rewarded, kept.first_token_ms, kept.latency_ms
      FROM {_GAPS} JOIN dashboard_turnrollup AS kept
           ON kept.begins_at >= gap.since AND kept.begins_at <= gap.until - make_interval(mins => %(minutes)s)
     WHERE kept.tenant_id = %(tenant)s AND kept.minutes = %(minutes)s
     ORDER BY kept.begins_at
"""  # noqa: S608  # our own words
# OFFSET 0: each gap is read by the index of time, however many gaps there are
_TURNS = f"""
    SELECT point, first, latency, GROUPING(first, latency), count(*), count(*) FILTER (WHERE state = 'failed'),
           coalesce(sum(prompt), 0), coalesce(sum(reply), 0)
      FROM (SELECT date_bin(make_interval(mins => %(minutes)s), created_at, %(origin)s) AS point, state,
                   (usage->>'prompt_tokens')::bigint AS prompt, (usage->>'completion_tokens')::bigint AS reply,
                   {bucket_sql("first_token_ms")} AS first, {bucket_sql("latency_ms")} AS latency
              FROM {_GAPS} CROSS JOIN LATERAL (
                   SELECT created_at, state, usage, first_token_ms, latency_ms FROM conversations_turn
                    WHERE tenant_id = %(tenant)s AND created_at >= gap.since AND created_at < gap.until
                      AND kind IN ('live', 'rollout') OFFSET 0) AS turn) AS one
     GROUP BY GROUPING SETS ((point), (point, first), (point, latency))
"""  # noqa: S608
_REWARDS = f"""
    SELECT date_bin(make_interval(mins => %(minutes)s), created_at, %(origin)s) AS point, sum(reward), count(*)
      FROM {_GAPS} CROSS JOIN LATERAL (
           SELECT turn.created_at, sample.reward
             FROM conversations_turn AS turn JOIN learning_sample AS sample ON sample.turn_id = turn.id
            WHERE turn.tenant_id = %(tenant)s AND turn.created_at >= gap.since AND turn.created_at < gap.until
              AND sample.reward IS NOT NULL OFFSET 0) AS one
     GROUP BY point
"""  # noqa: S608
_FIRST, _LATENCY, _ALL = 1, 2, 3  # what GROUPING says of a row


@dataclass(slots=True)
class Sums:
    """What the turns of some stretches sum up to: what clients asked, and what was said of any turn."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    reward: float = 0.0
    """The sum over `rewarded` samples."""
    rewarded: int = 0
    first_token_ms: Histogram = field(default_factory=Histogram)
    latency_ms: Histogram = field(default_factory=Histogram)

    def add(self, other: "Sums") -> None:
        """Sum up what another one holds, too."""
        self.requests += other.requests
        self.failed += other.failed
        self.prompt_tokens += other.prompt_tokens
        self.reply_tokens += other.reply_tokens
        self.reward += other.reward
        self.rewarded += other.rewarded
        self.first_token_ms.add(other.first_token_ms.counts)
        self.latency_ms.add(other.latency_ms.counts)


def sums_of(
    tenant_id: uuid.UUID, since: dt.datetime, until: dt.datetime, minutes: int
) -> dict[dt.datetime, Sums]:
    """Return the sums of a stretch by points of `minutes` (one of LEVELS), in order of time; empty points are left out.

    A query for each level up to that and two for what is in none. Needs the tenant's scope. Each stretch is as it was at one
    moment of the call: one that is thrown away meanwhile was right when it was read.
    """
    points: dict[dt.datetime, Sums] = defaultdict(Sums)
    gaps = [Stretch(since, until)]
    with connection.cursor() as cursor:
        for level in sorted((one for one in LEVELS if one <= minutes), reverse=True):
            cursor.execute(_KEPT, _asked(tenant_id, gaps, level))
            kept = cursor.fetchall()
            for begins, *figures in kept:
                points[begin(begins, minutes)].add(_kept(figures))
            gaps = without(gaps, [stretch(row[0], level) for row in kept])
        asked = _asked(tenant_id, gaps, minutes)
        cursor.execute(_TURNS, asked)
        for point, first, latency, grouping, requests, failed, prompt, reply in cursor.fetchall():
            sums = points[point]
            if grouping == _ALL:
                sums.add(Sums(requests, failed, int(prompt), int(reply)))
            elif grouping == _FIRST and first is not None:
                sums.first_token_ms.add({str(first): requests})
            elif grouping == _LATENCY and latency is not None:
                sums.latency_ms.add({str(latency): requests})
        cursor.execute(_REWARDS, asked)
        for point, reward, rewarded in cursor.fetchall():
            points[point].add(Sums(reward=reward, rewarded=rewarded))
    return dict(sorted(points.items()))


def _asked(tenant_id: uuid.UUID, gaps: Sequence[Stretch], minutes: int) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "minutes": minutes,
        "origin": ORIGIN,
        "since": [gap.since for gap in gaps],
        "until": [gap.until for gap in gaps],
    }


def _kept(figures: Sequence[Any]) -> Sums:
    requests, failed, prompt, reply, reward, rewarded, first, latency = figures
    durations = Histogram(json.loads(first)), Histogram(json.loads(latency))
    return Sums(requests, failed, prompt, reply, reward, rewarded, *durations)
