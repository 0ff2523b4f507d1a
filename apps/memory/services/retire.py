"""Out of the prompt once the weights hold it, and back once they do not."""

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion
from apps.memory.models import Preference, PreferenceState
from apps.memory.services.entries import revive
from kernel import audit
from kernel.locks import locked

ACTOR = "system:evaluation"


def retire(*, preference_ids: Sequence[uuid.UUID], version: AdapterVersion, reason: str) -> int:
    """Take active preferences out of the prompt: `version` does without being told. Returns how many."""
    with transaction.atomic():
        rows = list(
            locked(
                Preference.objects.filter(
                    id__in=preference_ids, policy_id=version.policy_id, state=PreferenceState.ACTIVE
                )
            )
        )
        for row in rows:
            row.state, row.held_by, row.reason = PreferenceState.LEARNED, version, reason[:200]
            row.held_since = timezone.now()
            row.save(update_fields=["state", "held_by", "held_since", "reason", "changed_at"])
            audit.record(
                actor=ACTOR,
                action="memory.retire",
                target=f"preference:{row.pk}",
                tenant_id=row.tenant_id,
                detail={"version": version.number, "reason": reason[:200]},
            )
    return len(rows)


def bring_back(*, preference_ids: Sequence[uuid.UUID], reason: str) -> int:
    """Tell learned preferences again: a regression was seen. Returns how many."""
    with transaction.atomic():
        rows = list(locked(Preference.objects.filter(id__in=preference_ids, state=PreferenceState.LEARNED)))
        for row in rows:
            revive(row, reason[:200])
            audit.record(
                actor=ACTOR,
                action="memory.bring_back",
                target=f"preference:{row.pk}",
                tenant_id=row.tenant_id,
                detail={"reason": reason[:200]},
            )
    return len(rows)
