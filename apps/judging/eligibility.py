"""Which turns are judged at all."""

from django.db.models import Q

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
    person = Q(user_id=session.user_id)
    if session.end_user_id is not None:
        person |= Q(end_user_id=session.end_user_id)
    since = Q(ended_at=None) | Q(ended_at__gt=turn.created_at)
    return OptOut.objects.filter(person, since, tenant_id=turn.tenant_id).exists()
