"""Where a version stands relative to the one that a policy trains from."""

import uuid

from apps.adapters.models import AdapterVersion
from apps.conversations.models import Turn
from apps.learning.rules.staleness import of_trajectory


class Lineage:
    """The versions from the bare base (None) to `head`, each with its number of steps."""

    def __init__(self, head: AdapterVersion | None) -> None:
        self.depth = head.depth if head else 0
        self._depths: dict[uuid.UUID | None, int] = {None: 0}
        if head is not None:
            rows = AdapterVersion.objects.filter(policy_id=head.policy_id).values_list(
                "id", "parent_id", "depth"
            )
            by_id = {id_: (parent, depth) for id_, parent, depth in rows}
            at: uuid.UUID | None = head.id
            while at is not None:
                parent, depth = by_id[at]
                self._depths[at] = depth
                at = parent

    def staleness(self, version_id: uuid.UUID | None) -> int | None:
        """Return the steps from a version to the head, or None where it lies on another branch."""
        depth = self._depths.get(version_id)
        return None if depth is None else self.depth - depth


def trajectory_staleness(session_id: uuid.UUID, lineage: Lineage) -> tuple[list[int | None], int | None]:
    """Return the staleness of each turn of a rollout, from its own version,
    and the rollout's, from its first turn's.

    None: on another branch.
    """
    versions = (
        Turn.objects.filter(session_id=session_id, side=False)
        .order_by("created_at", "id")
        .values_list("version_id", flat=True)
    )
    turns = [lineage.staleness(version_id) for version_id in versions]
    return turns, of_trajectory(turns)
