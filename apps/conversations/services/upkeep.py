"""What nobody says: that a session is over, that a gateway died with a turn in its hands.

Both run under `system_scope`, in batches; what two of them do at once is done once.
"""

import datetime as dt

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.conversations.holders import LOST_AFTER_S
from apps.conversations.models import Session, Turn, TurnHolder, TurnKind, TurnState
from apps.conversations.services.admission import ask_for_judging
from kernel.locks import locked

_BATCH = 100
_HOLDERS_KEPT = dt.timedelta(days=1)


def close_idle_sessions(*, idle_s: float) -> int:
    """Take sessions without a turn for `idle_s` seconds to be over and have their last turns judged.

    Returns how many sessions were closed. One that goes on later is opened again by its next turn.
    """
    before = timezone.now() - dt.timedelta(seconds=idle_s)
    closed = 0
    while True:
        with transaction.atomic():
            idle = list(
                locked(
                    Session.objects.filter(idle_at=None, last_turn_at__lt=before).exclude(
                        turns__state=TurnState.PENDING
                    ),
                    skip_locked=True,
                ).order_by("last_turn_at")[:_BATCH]
            )
            Session.objects.filter(id__in=[session.id for session in idle]).update(idle_at=timezone.now())
            unanswered = Turn.objects.filter(
                session__in=idle,
                state=TurnState.COMPLETE,
                side=False,
                kind__in=(TurnKind.LIVE, TurnKind.ROLLOUT),
                next_state__isnull=True,
            ).values_list("tenant_id", "id")
            for tenant_id, turn_id in unanswered:
                ask_for_judging(tenant_id=tenant_id, turn_id=turn_id)
        closed += len(idle)
        if len(idle) < _BATCH:
            return closed


def fail_lost_turns(*, older_than_s: float) -> int:
    """Mark turns whose process is gone as failed,
    and those that are pending longer than any may; returns how many.

    The first is presumed: a process that was only stopped may still end its turn, unless another took its
    place. The second is for good. `older_than_s` must exceed the engine's time limit, and is for turns that
    name no process. A process whose row is missing (a restored database) is first given one, as of now: it
    may live, and then says so.
    """
    holder = TurnHolder.objects.filter(id=OuterRef("holder_id"))
    unseen = (
        Turn.objects.filter(~Exists(holder), state=TurnState.PENDING, holder_id__isnull=False)
        .values_list("holder_id", flat=True)
        .distinct()
    )
    TurnHolder.objects.bulk_create(
        [TurnHolder(id=one, seen_at=Now()) for one in unseen if one is not None], ignore_conflicts=True
    )
    gone = Exists(holder.filter(seen_at__lt=Now() - dt.timedelta(seconds=LOST_AFTER_S)))
    old = Q(created_at__lt=Now() - dt.timedelta(seconds=older_than_s))
    pending = Turn.objects.filter(state=TurnState.PENDING)
    ended = {"state": TurnState.FAILED, "error": "the gateway stopped", "completed_at": Now()}
    failed = _update(pending.filter(old), **ended, idempotency_key=None)
    failed += _update(pending.filter(gone), **ended, presumed_lost_at=Now())
    presumed = Turn.objects.filter(old, presumed_lost_at__isnull=False)
    _update(presumed, presumed_lost_at=None, idempotency_key=None)
    TurnHolder.objects.filter(seen_at__lt=Now() - _HOLDERS_KEPT).delete()
    return failed


def _update(turns: QuerySet[Turn], **values: object) -> int:
    """Change turns, but for those that somebody has in hand:
    they end otherwise, or it is for the next time."""
    with transaction.atomic():
        ids = list(locked(turns, skip_locked=True).values_list("id", flat=True))
        return Turn.objects.filter(id__in=ids).update(**values)
