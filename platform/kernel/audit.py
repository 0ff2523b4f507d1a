"""Write an audit row in the transaction of the act it describes."""

import uuid
from collections.abc import Mapping

from kernel.models import AuditEntry


def record(
    *,
    actor: str,
    action: str,
    target: str,
    tenant_id: uuid.UUID | None,
    detail: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Record that `actor` did `action` to `target`. `detail` is JSON and must hold no secret."""
    return AuditEntry.objects.create(
        actor=actor, action=action, target=target, tenant_id=tenant_id, detail=dict(detail or {})
    )
