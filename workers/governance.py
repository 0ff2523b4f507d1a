"""What tenants asked of their data."""

import uuid

from apps.governance.erasure import work as erasures
from apps.governance.export import jobs as exports
from kernel.tenancy import tenant_scope
from workers.tasks import task


@task("workers.governance.write_export")
def write_export(*, tenant_id: str, export_id: str) -> None:
    """Write one export, unless somebody does."""
    with tenant_scope(tenant_id):
        exports.write(export_id=uuid.UUID(export_id))


@task("workers.governance.erase")
def erase(*, tenant_id: str, erasure_id: str) -> None:
    """Go on with one deletion."""
    with tenant_scope(tenant_id):
        erasures.erase(erasure_id=uuid.UUID(erasure_id))
