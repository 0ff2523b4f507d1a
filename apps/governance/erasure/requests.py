"""Ask for a deletion. What a prompt could be told of it is gone in the same
transaction; the rest is a worker's."""

import uuid
from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.conversations.models import Turn
from apps.governance.erasure.subjects import Meant
from apps.governance.models import Erasure, ErasureState, Subject
from apps.memory.lessons import end
from apps.memory.models import Evidence
from apps.memory.services import words_go
from kernel import audit, outbox
from kernel.errors import Conflict

TASK = "workers.governance.erase"
_WHOSE = ("policy_id", "user_id", "end_user_id")


def asked_before(*, meant: Meant, idempotency_key: str | None) -> Erasure | None:
    """Return the deletion that the key made, if it did; Conflict where that was of something else.

    Of an end user who is gone by now nobody can tell whether it is the same: then it is.
    """
    made = (
        None if idempotency_key is None else Erasure.objects.filter(idempotency_key=idempotency_key).first()
    )
    if made is None:
        return None
    gone = meant.subject == Subject.END_USER and meant.id is None
    if made.subject != meant.subject or (made.subject_id != meant.id and not gone):
        raise Conflict(
            "This key asked for the deletion of something else before.",
            field="Idempotency-Key",
            code="idempotency_key_reused",
        )
    return made


def request_erasure(
    *, tenant_id: uuid.UUID, meant: Meant, actor: str, idempotency_key: str | None = None
) -> Erasure:
    """Have a session, a person's conversations or all of them deleted; audited.

    Must run in the tenant's scope.

    From the next request on no prompt is told of it. The same wish while one is open, or by the same key,
    returns that one. Raises NotFound for what the tenant does not have, and as `asked_before`.
    """
    while True:
        found = _found_or_made(tenant_id, meant, actor, idempotency_key)
        if found is not None:
            return found


def _found_or_made(
    tenant_id: uuid.UUID, meant: Meant, actor: str, idempotency_key: str | None
) -> Erasure | None:
    """As `request_erasure`; None where somebody else's was in the way,
    and is done by now: then look again."""
    with transaction.atomic():
        same = Erasure.objects.filter(subject=meant.subject, subject_id=meant.id, state=ErasureState.OPEN)
        if (made := asked_before(meant=meant, idempotency_key=idempotency_key)) is not None:
            return made
        if (under_way := same.first()) is not None:
            return under_way
        meant.check()
        try:
            with transaction.atomic():
                erasure = Erasure.objects.create(
                    tenant_id=tenant_id,
                    actor=actor,
                    subject=meant.subject,
                    subject_id=meant.id,
                    turns_total=meant.turns().count(),
                    idempotency_key=idempotency_key,
                    moved_at=timezone.now(),
                )
        except IntegrityError:
            # of two at once, the second finds the first one's here
            return asked_before(meant=meant, idempotency_key=idempotency_key) or same.first()
        _untell(meant)
        audit.record(
            actor=actor,
            action="data.delete",
            target=_target(meant, tenant_id),
            tenant_id=tenant_id,
            detail={"erasure": str(erasure.pk), "turns": erasure.turns_total},
        )
        announce(erasure)
    return erasure


def announce(erasure: Erasure, *, delay_s: float = 0.0) -> None:
    """Call for a worker, in the caller's transaction."""
    outbox.enqueue(
        task=TASK,
        queue="ops",
        tenant_id=erasure.tenant_id,
        kwargs={"erasure_id": str(erasure.pk)},
        dedupe_key=f"erase:{erasure.pk}",
        delay_s=delay_s,
    )


def _untell(meant: Meant) -> None:
    if meant.subject == Subject.EVERYTHING:
        return  # may be many rows: the worker begins with them
    wishes = meant.preferences()
    forget_grounds(meant.turns(), of=wishes.values_list(*_WHOSE))
    end(meant.lessons(), "what it taught is deleted")
    wishes.delete()


def forget_grounds(turns: QuerySet[Turn], *, of: Iterable[tuple[Any, ...]] = ()) -> None:
    """Let no prompt be told of what turns said, in the caller's transaction;
    `of` more people, whose wishes go next.

    Whoever forgets a wish by hand takes its person, then it, and then what it rests on: so people come first
    here, too.
    """
    words_go(turns, of=of)
    Evidence.objects.filter(turn__in=turns).delete()


def _target(meant: Meant, tenant_id: uuid.UUID) -> str:
    return f"tenant:{tenant_id}" if meant.id is None else f"{meant.subject.value}:{meant.id}"
