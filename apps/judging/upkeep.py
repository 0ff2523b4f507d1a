"""Find turns that should have been judged and were not: the broker may lose what it was told."""

import datetime as dt

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from apps.conversations.models import Turn, TurnKind, TurnState
from apps.judging.eligibility import opted_out_turns
from apps.judging.models import Judgement, JudgementState
from apps.judging.services import ask_for_judgement
from apps.judging.services.windows import ask_for_stalled
from kernel import clock
from kernel.ids import first_id_at

__all__ = ["LOOK_BACK", "ask_for_stalled", "ask_for_unjudged"]

LOOK_BACK = dt.timedelta(days=7)


def ask_for_unjudged(*, older_than_s: float, limit: int) -> int:
    """Announce the judging of turns in scope whose next state is older than this and that nobody judges.

    Returns how many. Announced twice, a turn is still judged once; what is put to no judge is never
    announced, or it would be for ever, before everything else.
    """
    now = clock.now()
    judgements = Judgement.objects.filter(turn=OuterRef("pk"))
    over_or_held = judgements.filter(~Q(state=JudgementState.PENDING) | Q(claimed_until__gt=now))
    turns = (
        Turn.objects.filter(
            id__gte=first_id_at(now - LOOK_BACK),
            state=TurnState.COMPLETE,
            side=False,
            kind__in=(TurnKind.LIVE, TurnKind.ROLLOUT),
            next_state_at__lt=now - dt.timedelta(seconds=older_than_s),
            reply_edited=False,
            tenant__paused_at=None,
        )
        .filter(~Exists(over_or_held), ~opted_out_turns())
        .order_by("id")
        .values_list("tenant_id", "id")[:limit]
    )
    with transaction.atomic():
        found = list(turns)
        for tenant_id, turn_id in found:
            ask_for_judgement(turn_id=turn_id, tenant_id=tenant_id)
    return len(found)
