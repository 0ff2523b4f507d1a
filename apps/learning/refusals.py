"""What was set aside because steps with it failed, and how it comes back."""

import uuid
from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from apps.adapters.models import Policy
from apps.conversations.models import TurnKind
from apps.judging.reasons import Reason
from apps.learning import schedule
from apps.learning.models import Sample, SampleState
from kernel import audit
from kernel.locks import locked


def set_aside(policy_id: uuid.UUID) -> list[Sample]:
    """Return the policy's samples that were in too many refused steps, oldest beginning first."""
    return list(_aside().filter(policy_id=policy_id).order_by("turn_id"))


def replay(*, policy: Policy, actor: str, sample_ids: Collection[uuid.UUID] | None = None) -> int:
    """Give samples that were set aside all their tries back, all of the policy's or the ones named; audited.

    Returns how many. Samples that were dropped for another reason (stale, no signal) stay: that reason still
    holds.
    """
    with transaction.atomic():
        aside = _aside().filter(policy=policy)
        if sample_ids is not None:
            aside = aside.filter(id__in=sample_ids)
        ids = list(locked(aside).values_list("id", flat=True))
        if not ids:
            return 0
        Sample.objects.filter(id__in=ids).update(
            state=SampleState.READY, reason="", refusals=0, run=None, staleness=None, weight=1.0, outcome={}
        )
        audit.record(
            actor=actor,
            action="samples.replay",
            target=f"policy:{policy.id}",
            tenant_id=policy.tenant_id,
            detail={"samples": len(ids)},
        )
        schedule.consider(policy_id=policy.id)
    return len(ids)


def _aside() -> QuerySet[Sample]:
    """Return what refused steps are the reason for:
    a sample may have been in one and be dropped for another reason.

    Shadow samples keep nothing that a step could learn from again: quiet minutes make others.
    """
    quarantined = Sample.objects.filter(
        state=SampleState.DROPPED, reason__startswith=Reason.QUARANTINED.value
    )
    return quarantined.exclude(source=TurnKind.SHADOW)
