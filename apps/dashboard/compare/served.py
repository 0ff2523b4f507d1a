"""What versions answered, and what was said of it: each from its newest turns, in two queries."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from apps.dashboard.compare.rows import Line, kept, measured, plain, signed
from apps.dashboard.templatetags.pages import thousands
from apps.evaluation.intervals import Clustered, Interval, Shared, of_difference, of_mean, wilson

MOST_TURNS = 10_000
"""Of one version and kind, the newest: what the page costs does not grow with what a version answers."""
# live and rollout: what clients asked. Shadow and evaluation turns are the platform's own.
_TURNS = """
    WITH turns AS MATERIALIZED (
        SELECT turn.* FROM unnest(ARRAY[%(one)s, %(other)s]::uuid[]) AS asked(version_id)
          CROSS JOIN unnest(ARRAY['live', 'rollout']) AS wanted(kind)
          CROSS JOIN LATERAL (
            SELECT id, session_id, version_id, kind, state, usage, first_token_ms, latency_ms
              FROM conversations_turn
             WHERE tenant_id = %(tenant)s AND conversations_turn.version_id = asked.version_id
               AND conversations_turn.kind = wanted.kind
             ORDER BY created_at DESC LIMIT %(most)s) AS turn)
"""
_TRAFFIC = """
    SELECT version_id, count(*),
           greatest(count(*) FILTER (WHERE kind = 'live'), count(*) FILTER (WHERE kind = 'rollout')) >= %(most)s,
           count(DISTINCT session_id),
           count(*) FILTER (WHERE state = 'failed'),
           avg((usage->>'prompt_tokens')::float8), avg((usage->>'completion_tokens')::float8),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_token_ms),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms)
      FROM turns
     GROUP BY version_id
"""
_REWARDS = """
    , sessions AS (
        SELECT coalesce(sum(sample.reward) FILTER (WHERE turn.version_id = %(one)s), 0) AS a,
               count(*) FILTER (WHERE turn.version_id = %(one)s) AS m,
               coalesce(sum(sample.reward) FILTER (WHERE turn.version_id = %(other)s), 0) AS b,
               count(*) FILTER (WHERE turn.version_id = %(other)s) AS n
          FROM turns AS turn JOIN learning_sample AS sample ON sample.turn_id = turn.id
         WHERE sample.reward IS NOT NULL
         GROUP BY turn.session_id)
    SELECT count(*) FILTER (WHERE m > 0), sum(m), sum(a), sum(a * a), sum(a * m), sum(m * m),
           count(*) FILTER (WHERE n > 0), sum(n), sum(b), sum(b * b), sum(b * n), sum(n * n),
           count(*), sum(a * b), sum(a * n), sum(m * b), sum(m * n)
      FROM sessions
"""
_NOTHING: tuple[Any, ...] = (0, False, 0, 0, None, None, (None, None), (None, None))


@dataclass(frozen=True, slots=True)
class Served:
    """What one version answered."""

    requests: int
    is_part: bool
    """Whether there may be older ones of a kind: `MOST_TURNS` were found."""
    sessions: int
    failed: int
    prompt_tokens: float | None
    """Mean of a request."""
    reply_tokens: float | None
    first_token_ms: tuple[float | None, float | None]
    """Median and 95th percentile, milliseconds."""
    latency_ms: tuple[float | None, float | None]
    rewards: Clustered


@dataclass(frozen=True, slots=True)
class Both:
    """Two versions' turns side by side."""

    one: Served
    other: Served
    shared: Shared

    @property
    def any(self) -> bool:
        """Whether either has answered anything."""
        return self.one.requests + self.other.requests > 0

    @property
    def difference(self) -> Interval | None:
        """By how much the other's mean reward is higher, at 95 %; None where too little was judged."""
        return of_difference(self.one.rewards, self.other.rewards, self.shared)

    @property
    def verdict(self) -> str:
        """What the rewards show, in a sentence."""
        if self.one.rewards.mean is None or self.other.rewards.mean is None:
            return "What one of them answered has not been judged yet."
        found = self.difference
        if found is None:
            return "Too little was judged, or all alike, to say whether their rewards differ."
        if found.low > 0:
            return f"The newer one's mean reward is higher by {found.low:.3g} to {found.high:.3g} (95 %)."
        if found.high < 0:
            return f"The newer one's mean reward is lower by {-found.high:.3g} to {-found.low:.3g} (95 %)."
        return f"The rewards show no difference: it lies between {signed(found.low)} and {signed(found.high)} (95 %)."

    def lines(self) -> Sequence[Line]:
        """Return the lines of the table."""
        one, other = self.one, self.other
        apart = (other.rewards.mean or 0.0) - (one.rewards.mean or 0.0)
        both_judged = one.rewards.n and other.rewards.n
        return kept(
            [
                Line("Requests", *(_counted(side, side.requests) for side in (one, other))),
                Line("Sessions", *(_counted(side, side.sessions) for side in (one, other))),
                Line("Failed", _share(one), _share(other)),
                Line("Turns judged", *(_counted(side, side.rewards.n) for side in (one, other))),
                Line(
                    "Mean reward",
                    _mean(one.rewards),
                    _mean(other.rewards),
                    signed(apart) if both_judged and apart else "",
                ),
                measured("Tokens read a request", one.prompt_tokens, other.prompt_tokens),
                measured("Tokens written a reply", one.reply_tokens, other.reply_tokens),
                *_times("To the first token", one.first_token_ms, other.first_token_ms),
                *_times("To the last token", one.latency_ms, other.latency_ms),
            ]
        )


def served_by(tenant_id: uuid.UUID, one: uuid.UUID, other: uuid.UUID) -> Both:
    """Return what two versions answered, and what was said of it. Two queries; needs the tenant's scope.

    Of each version the newest `MOST_TURNS` live turns are read, and as many rollouts.
    A session's rewards are one cluster: replies to one person are alike.
    """
    asked: dict[str, Any] = {"tenant": tenant_id, "one": one, "other": other, "most": MOST_TURNS}
    with connection.cursor() as cursor:
        cursor.execute(_TURNS + _TRAFFIC, asked)
        traffic: Mapping[uuid.UUID, Sequence[Any]] = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute(_TURNS + _REWARDS, asked)
        sums = [float(value or 0) for value in cursor.fetchone()]
    return Both(
        _served(traffic.get(one, _NOTHING), sums[:6]),
        _served(traffic.get(other, _NOTHING), sums[6:12]),
        Shared(int(sums[12]), *sums[13:]),
    )


def _served(traffic: Sequence[Any], sums: Sequence[float]) -> Served:
    requests, is_part, sessions, failed, prompt, reply, first, latency = traffic
    rewards = Clustered(int(sums[0]), int(sums[1]), *sums[2:])
    return Served(requests, is_part, sessions, failed, prompt, reply, _pair(first), _pair(latency), rewards)


def _pair(values: Sequence[float | None] | None) -> tuple[float | None, float | None]:
    return (values[0], values[1]) if values else (None, None)


def _counted(one: Served, count: int) -> str:
    return f"at least {thousands(count)}" if one.is_part else thousands(count)


def _share(one: Served) -> str:
    if not one.failed:
        return "0"
    found = wilson(one.failed, one.requests)
    return f"{one.failed} ({100 * found.low:.2g} to {100 * found.high:.2g} %)"


def _mean(rewards: Clustered) -> str:
    if rewards.mean is None:
        return "-"
    found = of_mean(rewards)
    within = "" if found is None else f" ({plain(max(-1.0, found.low))} to {plain(min(1.0, found.high))})"
    return f"{plain(rewards.mean)}{within}"


def _times(
    label: str, one: tuple[float | None, float | None], other: tuple[float | None, float | None]
) -> list[Line]:
    return [
        measured(f"{label}, {which}", first, second, scale=0.001, unit="s")
        for which, first, second in zip(("median", "p95"), one, other, strict=True)
    ]
