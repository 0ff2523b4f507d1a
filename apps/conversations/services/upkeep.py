"""What nobody says: that a session is over, that a gateway died with a turn in its hands.

Both run under `system_scope`, in batches; what two of them do at once is done once.
"""

import datetime as dt

from django.db import transaction
from django.utils import timezone

from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.conversations.services.admission import ask_for_judging

_BATCH = 100


def close_idle_sessions(*, idle_s: float) -> int:
    """Take sessions without a turn for `idle_s` seconds to be over and have their last turns judged.

    Returns how many sessions were closed. One that goes on later is opened again by its next turn.
    """
    before = timezone.now() - dt.timedelta(seconds=idle_s)
    closed = 0
    while True:
        with transaction.atomic():
            idle = list(
                Session.objects.select_for_update(skip_locked=True)
                .filter(idle_at=None, last_turn_at__lt=before)
                .exclude(turns__state=TurnState.PENDING)
                .order_by("last_turn_at")[:_BATCH]
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
    """Mark turns that are pending for longer than any request may run as failed; returns how many.

    `older_than_s` must exceed the engine's time limit: the gateway that held such a turn is gone.
    """
    now = timezone.now()
    return Turn.objects.filter(
        state=TurnState.PENDING, created_at__lt=now - dt.timedelta(seconds=older_than_s)
    ).update(state=TurnState.FAILED, error="the gateway stopped", completed_at=now, idempotency_key=None)
