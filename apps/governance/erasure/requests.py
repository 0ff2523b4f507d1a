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

TASK = "workers.governance.erase"
_WHOSE = ("policy_id", "user_id", "end_user_id")


def request_erasure(*, tenant_id: uuid.UUID, meant: Meant, actor: str) -> Erasure:
    """Have a session, a person's conversations or all of them deleted; audited.

    Must run in the tenant's scope.

    From the next request on no prompt is told of it. The same wish while one is open returns that one.
    Raises NotFound for what the tenant does not have.
    """
    while True:
        found = _found_or_made(tenant_id, meant, actor)
        if found is not None:
            return found


def _found_or_made(tenant_id: uuid.UUID, meant: Meant, actor: str) -> Erasure | None:
    """As `request_erasure`; None where somebody else's was in the way,
    and is done by now: then look again."""
    with transaction.atomic():
        same = Erasure.objects.filter(subject=meant.subject, subject_id=meant.id, state=ErasureState.OPEN)
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
                    moved_at=timezone.now(),
                )
        except IntegrityError:
            # of two at once, the second finds the first one's here
            return same.first()
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
