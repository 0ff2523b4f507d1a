"""Read the gauges that need more than a step's own numbers, and do what crossings ask for."""

import datetime as dt
import uuid

from apps.learning.drift import actions, readings
from kernel.tenancy import tenant_scope
from workers.tasks import task


@task("workers.drift.measure")
def measure(*, tenant_id: str, policy_id: str, run_id: str | None = None, until: str | None = None) -> None:
    """Read the second and third gauge of a policy at a run's end, or of a week."""
    with tenant_scope(tenant_id):
        readings.measure(
            policy_id=uuid.UUID(policy_id),
            run_id=None if run_id is None else uuid.UUID(run_id),
            until=None if until is None else dt.datetime.fromisoformat(until),
        )


@task("workers.drift.fall_back")
def fall_back(*, tenant_id: str, crossing_id: str) -> None:
    """Go back to the version before."""
    with tenant_scope(tenant_id):
        actions.fall_back(crossing_id=uuid.UUID(crossing_id))
