"""Which policies may be taught, and what is taken back once something else is wanted."""

import uuid

from django.db.models import Max

from apps.adapters.models import Policy
from apps.learning.models import Sample, SampleState
from apps.memory.lessons import Standing
from apps.memory.models import Preference, PreferenceState


def candidates() -> list[tuple[uuid.UUID, uuid.UUID]]:
    """Return (tenant, policy) of those in scope that are told something, those that waited longest first."""
    told = Preference.objects.filter(state=PreferenceState.ACTIVE).values("policy_id")
    rows = (
        Policy.objects.filter(pk__in=told, training_enabled=True, tenant__training_enabled=True)
        .annotate(last=Max("lessons__changed_at"))
        .order_by("last", "pk")
    )
    return list(rows.values_list("tenant_id", "pk"))


def drop_outdated(policy: Policy, stands: Standing | None) -> int:
    """Take back waiting shadow samples of preferences that were deleted or changed; return how many."""
    wanted = {str(one.id) for one in stands.wanted} if stands is not None else set()
    outdated = [
        sample.pk
        for sample in Sample.objects.select_for_update(skip_locked=True).filter(
            policy=policy, source="shadow", state=SampleState.READY
        )
        if not all(set(hint.get("preferences", ())) == wanted for hint in sample.hints)
    ]
    return Sample.objects.filter(pk__in=outdated).update(
        state=SampleState.DROPPED, reason="something else is wanted now"
    )
