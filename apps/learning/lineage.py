"""Where a version stands relative to the one that a policy trains from."""

import uuid

from apps.adapters.models import AdapterVersion


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
