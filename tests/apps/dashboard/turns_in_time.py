"""Turns scattered over weeks, and what they sum up to as the turns themselves say,
without anything that is kept."""

import datetime as dt
import random
import uuid
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.dashboard.metrics import RANGES, Traffic, traffic
from apps.dashboard.rollups.histogram import ERROR
from apps.learning.models import Sample
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody

_SUMS = """
    SELECT count(*), count(*) FILTER (WHERE state = 'failed'),
           coalesce(sum((usage->>'prompt_tokens')::bigint), 0), coalesce(sum((usage->>'completion_tokens')::bigint), 0),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_token_ms),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms)
      FROM conversations_turn
     WHERE tenant_id = %(tenant)s AND created_at >= %(since)s AND created_at < %(until)s AND kind IN ('live', 'rollout')
       AND (%(policy)s::uuid IS NULL OR policy_id = %(policy)s)
"""
_POINTS = """
    SELECT extract(epoch FROM date_bin(%(step)s, created_at, '2020-01-01 00:00+00'))::float8 AS point, count(*),
           count(*) FILTER (WHERE state = 'failed'), coalesce(sum((usage->>'completion_tokens')::bigint), 0),
           coalesce(sum((usage->>'prompt_tokens')::bigint), 0),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_token_ms),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms)
      FROM conversations_turn
     WHERE tenant_id = %(tenant)s AND created_at >= %(since)s AND created_at < %(until)s AND kind IN ('live', 'rollout')
       AND (%(policy)s::uuid IS NULL OR policy_id = %(policy)s)
     GROUP BY point ORDER BY point
"""
_REWARDS = """
    SELECT extract(epoch FROM date_bin(%(step)s, turn.created_at, '2020-01-01 00:00+00'))::float8 AS point,
           avg(sample.reward), count(*)
      FROM learning_sample AS sample JOIN conversations_turn AS turn ON turn.id = sample.turn_id
     WHERE sample.tenant_id = %(tenant)s AND sample.reward IS NOT NULL
       AND (%(policy)s::uuid IS NULL OR turn.policy_id = %(policy)s)
       AND turn.created_at >= %(since)s AND turn.created_at < %(until)s
     GROUP BY point ORDER BY point
"""


def scatter(
    somebody: Somebody, count: int, *, seed: int = 1, days: float = 31, now: dt.datetime | None = None
) -> list[uuid.UUID]:
    """Give a tenant turns of all kinds and policies at random moments of the last days,
    some at the edge of a half-hour."""
    draw, now = random.Random(seed), now or timezone.now()
    with tenant_scope(somebody.tenant.pk):
        session = Session.objects.create(user=somebody.user, policy=somebody.policy)
        policies = list(Policy.objects.order_by("pk"))
        turns = [_turn(somebody, session, policies[number % len(policies)], draw) for number in range(count)]
        Turn.objects.bulk_create(turns)
        samples = [
            Sample(
                tenant=somebody.tenant,
                policy=turn.policy,
                turn=turn,
                source=turn.kind,
                reward=draw.choice([None, -1.0, 0.0, 0.5, 1.0]),
            )
            for turn in turns
            if draw.random() < 0.6
        ]
        Sample.objects.bulk_create(samples)
    moments = [now - dt.timedelta(days=days * draw.random()) for _ in turns]
    for number, moment in enumerate(moments):
        if number % 10 == 0:
            moments[number] = moment.replace(minute=moment.minute // 30 * 30, second=0, microsecond=0)
    put(dict(zip((turn.pk for turn in turns), moments, strict=True)))
    return [turn.pk for turn in turns]


def put(moments: dict[uuid.UUID, dt.datetime]) -> None:
    """Let turns have been admitted at these moments."""
    with system_scope("tests"), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_turn SET created_at = moment"
            " FROM unnest(%s::uuid[], %s::timestamptz[]) AS put (turn, moment) WHERE id = turn",
            [list(moments), list(moments.values())],
        )


def _turn(somebody: Somebody, session: Session, policy: Policy, draw: random.Random) -> Turn:
    state = draw.choices([*TurnState], [1, 20, 2, 3])[0]
    spoke = draw.random() < 0.9
    return Turn(
        tenant=somebody.tenant,
        session=session,
        policy=policy,
        kind=draw.choices([*TurnKind], [10, 3, 2, 1])[0],
        state=state,
        messages=[],
        request_hash=uuid.uuid4().hex.ljust(64, "0"),
        body_sha256="0" * 64,
        reply={} if state == TurnState.COMPLETE else None,
        completed_at=timezone.now() if state == TurnState.COMPLETE else None,
        usage={"prompt_tokens": draw.randrange(5000), "completion_tokens": draw.randrange(900)}
        if spoke
        else {},
        first_token_ms=draw.lognormvariate(5, 1.2) if spoke else None,
        latency_ms=draw.lognormvariate(8, 0.8) if spoke else None,
    )


def direct(
    tenant_id: uuid.UUID, span: str, now: dt.datetime, policy_id: uuid.UUID | None = None
) -> dict[str, Any]:
    """Return what the turns say of a range."""
    hours, minutes = RANGES[span]
    begins = now - dt.timedelta(hours=hours)
    asked = {
        "tenant": tenant_id,
        "policy": policy_id,
        "since": begins.replace(minute=begins.minute // 30 * 30, second=0, microsecond=0),
        "until": now,
        "step": f"{minutes} minutes",
    }
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        found = {}
        for name, statement in (("sums", _SUMS), ("points", _POINTS), ("rewards", _REWARDS)):
            cursor.execute(statement, asked)
            found[name] = cursor.fetchall()
    return found


def same(tenant_id: uuid.UUID, span: str, now: dt.datetime, policy_id: uuid.UUID | None = None) -> Traffic:
    """Check that the page says what the turns say:
    sums exactly, percentiles within the bound; return what it says."""
    with tenant_scope(tenant_id):
        seen = traffic(tenant_id, span, now, policy_id)
    turns = direct(tenant_id, span, now, policy_id)
    ((requests, failed, prompt, reply, first, latency),) = turns["sums"]
    assert (seen.requests, seen.failed, seen.prompt_tokens, seen.reply_tokens) == (
        requests,
        failed,
        prompt,
        reply,
    )
    near(seen.first_token_ms, first)
    near(seen.latency_ms, latency)
    counts = ("t", "requests", "failed", "tokens", "prompt")
    assert [tuple(one[name] for name in counts) for one in seen.points] == [
        row[:5] for row in turns["points"]
    ]
    for one, (*_, first, last) in zip(seen.points, turns["points"], strict=True):
        near((one["p50"], one["p95"]), first)
        near((one["last50"], one["last95"]), last)
    # rewards are halves: their sums are exact, a mean is rounded once
    assert [(one["t"], round(one["reward"], 12), one["n"]) for one in seen.rewards] == [
        (point, round(mean, 12), count) for point, mean, count in turns["rewards"]
    ]
    return seen


def near(seen: tuple[float | None, ...], exact: list[float | None] | None) -> None:
    """Check percentiles against exact ones."""
    for one, other in zip(seen, exact or (None, None), strict=True):
        if one is None or other is None:
            assert one is other
        else:
            assert abs(one - other) <= ERROR * other * (1 + 1e-9), (one, other)
