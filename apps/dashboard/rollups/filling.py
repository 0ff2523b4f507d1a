"""Sum up stretches that are over.

A message that came twice, or a process that dies at any line, changes nothing.

A stretch is kept only by who holds its half-hours, which Postgres gives to nobody while a transaction that
changed a turn of one is under way; and whoever changes one later throws away what is kept of it, in the same
transaction (`migrations/dashboard`). So nobody sees a change without seeing that its sums are gone.
"""

import datetime as dt
import random
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.accounts.models import Tenant
from apps.conversations.models import Turn
from apps.dashboard.models import TurnRollup
from apps.dashboard.rollups.stretches import LEVELS, ORIGIN, Stretch, begin, stretch
from apps.dashboard.rollups.sums import Sums, sums_of
from kernel.locks import locked
from kernel.tenancy import system_scope, tenant_scope

KEPT = dt.timedelta(days=30)
"""As far as the longest range of the page looks back."""
SETTLED = dt.timedelta(minutes=5)
"""After so long most turns of a half-hour have ended, and most that is said of them is said."""

# from the newest turn to the newest one of an earlier stretch, and so on:
# one look-up in the index of time each
_UNSUMMED = """
    WITH RECURSIVE seen AS (
        SELECT (SELECT max(created_at) FROM conversations_turn
                 WHERE tenant_id = %(tenant)s AND created_at >= %(since)s AND created_at < %(until)s) AS at
         UNION ALL
        SELECT (SELECT max(created_at) FROM conversations_turn
                 WHERE tenant_id = %(tenant)s AND created_at >= %(since)s
                   AND created_at < date_bin(%(step)s, seen.at, %(origin)s))
          FROM seen WHERE seen.at IS NOT NULL)
    SELECT date_bin(%(step)s, at, %(origin)s) FROM seen
     WHERE at IS NOT NULL AND NOT EXISTS (
           SELECT FROM dashboard_turnrollup AS kept
            WHERE kept.tenant_id = %(tenant)s AND kept.begins_at = date_bin(%(step)s, at, %(origin)s)
              AND kept.minutes = %(minutes)s AND kept.of_policy IS NULL)
     ORDER BY at DESC
"""


def sum_up_due(*, limit: int) -> int:
    """Sum up stretches that are over and have turns, of all tenants in turns,
    at most `limit`; return how many.

    Newest first, so that a tenant that nothing is kept of gets its last days first. What is older than the
    page looks back is forgotten.
    """
    now = timezone.now()
    known = Stretch(begin(now - KEPT, max(LEVELS)), begin(now - SETTLED, min(LEVELS)))
    with system_scope("turns are summed up"):
        TurnRollup.objects.filter(begins_at__lt=known.since).delete()
        asked = Turn.objects.filter(tenant=OuterRef("pk"), created_at__gte=known.since)
        tenants = list(Tenant.objects.filter(Exists(asked)).values_list("pk", flat=True))
    random.shuffle(tenants)  # whoever comes last this time is not always the same
    turns = deque((tenant, _due(tenant, LEVELS, known)) for tenant in tenants)
    done = 0
    while turns and done < limit:
        tenant, due = turns.popleft()
        found = next(due, None)
        if found is not None:
            done += sum_up(tenant, *found)
            turns.append((tenant, due))
    return done


def sum_up(tenant_id: uuid.UUID, begins: dt.datetime, minutes: int) -> bool:
    """Keep the sums of a stretch; False where somebody changes a turn of it right now,
    or a smaller one in it is to come first.

    It is found again then. Waits for nobody once it holds something, so that nobody waits for it in a circle.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        if locked(Tenant.objects.filter(pk=tenant_id), skip_locked=True).first() is None:
            return False
        with connection.cursor() as cursor:
            cursor.execute("SELECT attune_hold_half_hours(%s, %s, %s)", [tenant_id, begins, minutes])
            (held,) = cursor.fetchone()
        level, whole = LEVELS.index(minutes), stretch(begins, minutes)
        if not held or (level and _unsummed(tenant_id, LEVELS[level - 1], whole)):
            return False
        rows = [
            _row(tenant_id, begins, minutes, policy, found.get(int(begins.timestamp()), Sums()))
            for policy in (None, *_policies(minutes, whole))
            for found in [sums_of(tenant_id, *whole, minutes, policy)]
        ]
        TurnRollup.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def _due(tenant_id: uuid.UUID, levels: Sequence[int], within: Stretch) -> Iterator[tuple[dt.datetime, int]]:
    """Yield what is to be summed up next, smaller stretches before the one that they are in."""
    *smaller, minutes = levels
    for begins in _unsummed(tenant_id, minutes, within):
        whole = stretch(begins, minutes)
        part = Stretch(begins, min(whole.until, within.until))
        if smaller:
            yield from _due(tenant_id, smaller, part)
        if part == whole:
            yield begins, minutes


def _unsummed(tenant_id: uuid.UUID, minutes: int, within: Stretch) -> list[dt.datetime]:
    """Return the stretches that have turns and are not kept, by their beginning, newest first."""
    asked: dict[str, Any] = {
        "tenant": tenant_id,
        "since": within.since,
        "until": within.until,
        "minutes": minutes,
        "step": dt.timedelta(minutes=minutes),
        "origin": ORIGIN,
    }
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(_UNSUMMED, asked)
        return [begins for (begins,) in cursor.fetchall()]


def _policies(minutes: int, whole: Stretch) -> list[uuid.UUID]:
    """Return the policies that have turns in a stretch:
    as the stretches in it say, where it has smaller ones."""
    if minutes == min(LEVELS):
        turns = Turn.objects.filter(created_at__gte=whole.since, created_at__lt=whole.until)
        return list(turns.order_by().values_list("policy_id", flat=True).distinct())
    below = LEVELS[LEVELS.index(minutes) - 1]
    kept = TurnRollup.objects.filter(
        minutes=below, begins_at__gte=whole.since, begins_at__lt=whole.until, of_policy__isnull=False
    )
    named = kept.order_by().values_list("of_policy", flat=True).distinct()
    return [policy for policy in named if policy is not None]


def _row(
    tenant_id: uuid.UUID, begins: dt.datetime, minutes: int, policy: uuid.UUID | None, sums: Sums
) -> TurnRollup:
    return TurnRollup(
        tenant_id=tenant_id,
        begins_at=begins,
        minutes=minutes,
        of_policy=policy,
        requests=sums.requests,
        failed=sums.failed,
        prompt_tokens=sums.prompt_tokens,
        reply_tokens=sums.reply_tokens,
        reward=sums.reward,
        rewarded=sums.rewarded,
        first_token_ms=sums.first_token_ms.written,
        latency_ms=sums.latency_ms.written,
    )
