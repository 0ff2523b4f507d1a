"""Ask for a deletion. What a prompt could be told of it is gone in the same transaction; the rest is a worker's."""

import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.governance.erasure.subjects import Meant
from apps.governance.models import Erasure, ErasureState, Subject
from apps.memory.models import Evidence
from kernel import audit, outbox

TASK = "workers.governance.erase"


def request_erasure(*, tenant_id: uuid.UUID, meant: Meant, actor: str) -> Erasure:
    """Have a session, a person's conversations or all of them deleted; audited. Must run in the tenant's scope.

    From the next request on no prompt is told of it. The same wish while one is open returns that one. Raises
    NotFound for what the tenant does not have.
    """
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
            return same.get()
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
    Evidence.objects.filter(turn__in=meant.turns()).delete()
    meant.preferences().delete()


def _target(meant: Meant, tenant_id: uuid.UUID) -> str:
    return f"tenant:{tenant_id}" if meant.id is None else f"{meant.subject.value}:{meant.id}"
