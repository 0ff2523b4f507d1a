"""Which turns are judged at all."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.conversations.models import Turn, TurnKind, TurnState
from apps.judging.models import OptOut
from apps.judging.reasons import Reason


def why_not_judged(turn: Turn) -> Reason | None:
    """Return why a turn (with its session) is never judged, or None where it is.

    What people said who opted out is sent to no judge. Where only training is switched off, turns are judged
    all the same: the tenant may want to see how the policy does.
    """
    if turn.kind == TurnKind.EVALUATION:
        return Reason.EVALUATION
    if turn.side:
        return Reason.SIDE
    if turn.state == TurnState.ABORTED:
        return Reason.ABORTED
    if turn.state == TurnState.FAILED:
        return Reason.FAILED
    return Reason.OPTED_OUT if person_opted_out(turn) else None


def person_opted_out(turn: Turn) -> bool:
    """Return whether the user or end user of a turn takes no part: today, or when it was said."""
    session = turn.session
    return opt_outs(turn.tenant_id, session.user_id, session.end_user_id, turn.created_at).exists()


def opt_outs(tenant: Any, user: Any, end_user: Any, said_at: Any) -> QuerySet[OptOut]:
    """Return the opt-outs of a tenant that hold for what a user or end user said at a
    moment; values or `OuterRef`s.

    A user may belong to several tenants and take no part in one of them.
    """
    person = Q(user_id=user) if end_user is None else Q(user_id=user) | Q(end_user_id=end_user)
    return OptOut.objects.filter(person, Q(ended_at=None) | Q(ended_at__gt=said_at), tenant_id=tenant)


def opted_out_turns() -> Exists:
    """Return the condition on turns that their user or end user took no part when they said
    it, or takes none today."""
    person = (OuterRef("session__user_id"), OuterRef("session__end_user_id"))
    return Exists(opt_outs(OuterRef("tenant_id"), *person, OuterRef("created_at")))
