"""Bring a created version live."""

import uuid

from django.db import transaction

from apps.adapters import publishing
from apps.adapters.models import AdapterVersion
from apps.learning import schedule
from kernel.tenancy import tenant_scope
from workers.tasks import task


@task("workers.publishing.publish")
def publish(*, tenant_id: str, version_id: str) -> None:
    """Preflight, load, probe and point; then see whether the next batch waits already."""
    with tenant_scope(tenant_id):
        publishing.publish(uuid.UUID(version_id))
        version = AdapterVersion.objects.filter(id=version_id).first()
        if version is not None:
            with transaction.atomic():
                schedule.consider(policy_id=version.policy_id)
