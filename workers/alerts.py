"""Bring alerts to those who want to know."""

import uuid

from apps.alerts import delivery
from kernel.tenancy import tenant_scope
from workers.tasks import task


@task("workers.alerts.deliver")
def deliver(*, tenant_id: str, delivery_id: str) -> None:
    """Try one delivery; a failure is tried again by a later message."""
    with tenant_scope(tenant_id):
        delivery.deliver(delivery_id=uuid.UUID(delivery_id))
