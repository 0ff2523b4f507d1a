"""Out of the prompt once the weights hold it, and back once they do not."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy
from apps.adapters.selectors import lineage_of
from apps.memory.models import Preference, PreferenceState
from apps.memory.services.entries import revive
from kernel import audit
from kernel.locks import locked

ACTOR = "system:evaluation"

# only where another version than the live one is the holder is there a lineage to walk,
# and no further than to the lowest holder
_HELD_ELSEWHERE = """
    WITH RECURSIVE held AS (
        SELECT preference.tenant_id, preference.policy_id, preference.held_by_id, policy.live_id,
               coalesce(holder.depth, 0) AS depth
        FROM memory_preference AS preference
        JOIN adapters_policy AS policy ON policy.id = preference.policy_id
        LEFT JOIN adapters_adapterversion AS holder ON holder.id = preference.held_by_id
        WHERE preference.state = %s
          AND (preference.held_by_id IS NULL OR preference.held_by_id IS DISTINCT FROM policy.live_id)
    ), lineage AS (
        SELECT live_id AS version_id, min(depth) AS lowest FROM held WHERE live_id IS NOT NULL AND held_by_id IS NOT NULL GROUP BY live_id
        UNION ALL
        SELECT version.parent_id, lineage.lowest
        FROM lineage JOIN adapters_adapterversion AS version ON version.id = lineage.version_id
        WHERE version.parent_id IS NOT NULL AND version.depth > lineage.lowest
    )
    SELECT DISTINCT tenant_id, policy_id FROM held
    WHERE held_by_id IS NULL OR held_by_id NOT IN (SELECT version_id FROM lineage)
    ORDER BY policy_id
    LIMIT %s
"""


def retire(*, entries: Sequence[Mapping[str, Any]], version: AdapterVersion, reason: str) -> int:
    """Take active preferences out of the prompt: `version` does without being told. Returns how many.

    What is pinned stays.
    `entries`: {id, revision} of each, as they were when that was measured. Where one says something else by
    now, or is gone, none is taken out, and 0 is returned.
    """
    wanted = {uuid.UUID(one["id"]): one["revision"] for one in entries}
    with transaction.atomic():
        found = locked(Preference.objects.filter(id__in=wanted, policy_id=version.policy_id))
        said = {
            row.pk: row for row in found if row.state in (PreferenceState.ACTIVE, PreferenceState.LEARNED)
        }
        if {key: row.revision for key, row in said.items()} != wanted:
            return 0
        rows = [row for row in said.values() if row.state == PreferenceState.ACTIVE and not row.pinned]
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


def tell_again(*, policy_id: uuid.UUID) -> int:
    """Tell again what the weights that answer now never held: the pointer was moved off their lineage.

    Returns how many.
    """
    with transaction.atomic():
        # whoever takes something out of the prompt holds the pointer, too
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).filter(pk=policy_id).first()
        if policy is None:
            return 0
        learned = Preference.objects.filter(policy=policy, state=PreferenceState.LEARNED)
        untold = learned.exclude(held_by__in=lineage_of(policy, policy.live_id))
        return bring_back(
            preference_ids=list(untold.values_list("pk", flat=True)),
            reason=f"the policy was moved to {_called(policy.live)}, which never learned it",
        )


def _called(version: AdapterVersion | None) -> str:
    return "the bare base" if version is None else f"version {version.number}"


def held_elsewhere(*, limit: int) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """Return (tenant, policy) of those in scope with learned preferences that the live
    version's lineage never held.

    As `tell_again` finds them, for all policies at once: a holder may lie further on, or on another branch.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HELD_ELSEWHERE, [PreferenceState.LEARNED, limit])
        found: list[tuple[uuid.UUID, uuid.UUID]] = cursor.fetchall()
    return found
