"""Users and end users who take no part in training:
from the moment they say so, and for what they said before."""

import uuid
from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import EndUser, Membership
from apps.judging.models import OptOut
from apps.judging.reasons import Reason
from apps.learning.models import Sample, SampleState
from apps.learning.withdrawn import set_aside
from kernel import audit
from kernel.errors import InvalidInput, NotFound
from kernel.locks import locked


def opt_out(
    *,
    tenant_id: uuid.UUID,
    actor: str,
    user_id: uuid.UUID | None = None,
    end_user_id: uuid.UUID | None = None,
) -> OptOut:
    """Take a user or an end user of a tenant out: no turn of theirs is judged or trained on from now on.

    Audited.

    Samples of theirs that wait are set aside; a running step that holds some makes no version (`withdrawn`),
    and what committed steps have learned stays (erasure undoes that). The same again returns the row that is
    there. Raises NotFound for who is not of the tenant, or is deleted in this moment.
    """
    who = _who(tenant_id, user_id, end_user_id)
    with transaction.atomic():
        row, is_new = _out(tenant_id, actor, who)
        if not is_new:
            return row
        theirs = Sample.objects.filter(
            tenant_id=tenant_id,
            state=SampleState.READY,
            **{f"turn__session__{name}": value for name, value in who.items()},
        )
        # locked by themselves: one that a run takes in this moment is the run's
        waiting = Sample.objects.filter(
            id__in=list(theirs.values_list("id", flat=True)), state=SampleState.READY
        )
        number = set_aside(
            locked(waiting).values_list("id", flat=True), SampleState.INELIGIBLE, Reason.OPTED_OUT
        )
        _hold(end_user_id)
        audit.record(
            actor=actor,
            action="training.opt_out",
            target=_target(who),
            tenant_id=tenant_id,
            detail={"samples_set_aside": number},
        )
    return row


def opt_in(*, row: OptOut, actor: str) -> bool:
    """End one opt-out: the person's turns from now on teach again, what was said before stays out.

    Returns whether it was this one that kept them out. One that ended before ends nothing: who has opted out
    anew since stays out, however late the wish comes or how often.
    """
    with transaction.atomic():
        ended = OptOut.objects.filter(pk=row.pk, ended_at=None).update(ended_at=timezone.now())
        if ended:
            who = {"user_id": row.user_id} if row.user_id else {"end_user_id": row.end_user_id}
            audit.record(actor=actor, action="training.opt_in", target=_target(who), tenant_id=row.tenant_id)
    return bool(ended)


def _out(
    tenant_id: uuid.UUID, actor: str, who: dict[str, uuid.UUID], *, tries: int = 3
) -> tuple[OptOut, bool]:
    """Return the row by which somebody is out, and whether it was made now:
    one that is there may end at this moment."""
    try:
        with transaction.atomic():
            return OptOut.objects.create(tenant_id=tenant_id, actor=actor, **who), True
    except IntegrityError:
        there = OptOut.objects.filter(tenant_id=tenant_id, ended_at=None, **who).first()
        if there is not None:
            return there, False
        if tries == 1:
            raise
    return _out(tenant_id, actor, who, tries=tries - 1)


def _who(
    tenant_id: uuid.UUID, user_id: uuid.UUID | None, end_user_id: uuid.UUID | None
) -> dict[str, uuid.UUID]:
    """Return the one person that is meant, who belongs to the tenant."""
    if user_id is not None and end_user_id is None:
        if not Membership.objects.filter(tenant_id=tenant_id, user_id=user_id).exists():
            raise NotFound("there is no such user", field="user_id")
        return {"user_id": user_id}
    if end_user_id is not None and user_id is None:
        if not EndUser.objects.filter(tenant_id=tenant_id, id=end_user_id).exists():
            raise NotFound("there is no such end user", field="end_user_id")
        return {"end_user_id": end_user_id}
    raise InvalidInput("Name a user or an end user, one of them.", field="user_id")


def _hold(end_user_id: uuid.UUID | None) -> None:
    """Keep an end user from a deletion until the commit; NotFound for one whom a deletion has taken by then.

    After samples, as a deletion takes names last.
    """
    if end_user_id is not None and not list(locked(EndUser.objects.filter(id=end_user_id))):
        raise NotFound("there is no such end user", field="end_user_id")


def _target(who: Mapping[str, uuid.UUID | None]) -> str:
    name, value = next(iter(who.items()))
    return f"{name.removesuffix('_id')}:{value}"
