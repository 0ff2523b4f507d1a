"""Who a REST request acts for, and how much of the tenant that lets them see and change."""

import enum
import uuid
from dataclasses import dataclass

from kernel.errors import Forbidden


class Access(enum.IntEnum):
    """From least to most: each level may do all that those below it may."""

    VIEW = 1
    """Sees policies, versions, runs and sums; no conversations."""
    TALK = 2
    """Sees their own conversations too, and has keys."""
    MANAGE = 3
    """Sees all of the tenant's conversations and changes its policies, keys and settings."""
    OWN = 4
    """Changes who belongs to the tenant."""


@dataclass(frozen=True, slots=True)
class RestCaller:
    """An authenticated person acting in one tenant, by a key or by a browser's session."""

    tenant_id: uuid.UUID
    user_id: uuid.UUID
    access: Access
    actor: str
    """How audit rows name them."""
    may_write: bool = True
    """False for a key that lacks the scope to change things."""
    policies: frozenset[uuid.UUID] | None = None
    """The only ones that exist for a key that is limited to some; it never writes. None: every one."""

    def require(self, needed: Access) -> None:
        """Raise Forbidden unless the caller has at least this access."""
        if self.access < needed:
            raise Forbidden(
                f"This needs more than the access `{self.access.name.lower()}`. Ask an owner for another role."
            )

    @property
    def sees_everybody(self) -> bool:
        """Whether all of the tenant's conversations are theirs to read, or only their own."""
        return self.access >= Access.MANAGE
