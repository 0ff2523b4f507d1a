"""Let sessions be old, let them go by age, and see what is left."""

import datetime as dt
import uuid
from typing import Any

from django.utils import timezone

from apps.conversations.models import Session, Turn, TurnState
from apps.governance.models import Erasure, ErasureState, Subject
from apps.learning.configuring import configure
from apps.learning.models import Sample, SampleState
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from workers import upkeep
from workers.governance import erase

DAY = dt.timedelta(days=1)


def keep(rows: Rows, days: int | None) -> None:
    with tenant_scope(rows.tenant.pk):
        configure(policy_id=rows.policy.pk, actor="user:x", config={"retention_days": days})


def aged(rows: Rows, days: float, *, turns: int = 1, **values: Any) -> Session:
    """Add a session whose last turn was so long ago."""
    when = timezone.now() - dt.timedelta(days=days)
    with tenant_scope(rows.tenant.pk):
        session = Session.objects.create(user=rows.user, policy=rows.policy, last_turn_at=when, **values)
        parent = None
        for number in range(turns):
            parent = Turn.objects.create(
                session=session,
                policy=rows.policy,
                parent=parent,
                state=TurnState.FAILED,
                messages=[{"role": "user", "content": f"secret {number}"}],
                request_hash="0" * 64,
                body_sha256="0" * 64,
            )
            Sample.objects.create(
                policy=rows.policy, turn=parent, source="live", state=SampleState.INELIGIBLE, reason="failed"
            )
        Session.objects.filter(pk=session.pk).update(created_at=when)
    return session


def older(rows: Rows, days: float) -> None:
    """Let what was said in the tenant's first session be so long ago."""
    when = timezone.now() - dt.timedelta(days=days)
    with tenant_scope(rows.tenant.pk):
        Session.objects.filter(pk=rows.session.pk).update(last_turn_at=when, created_at=when)


def swept() -> list[Erasure]:
    """Let the clock call once, and workers do what it asks for; return the sweeps, oldest first."""
    upkeep.begin_sweeps()
    with system_scope("look"):
        due = list(Erasure.objects.filter(subject=Subject.AGED, state=ErasureState.OPEN))
    for one in due:
        erase(tenant_id=str(one.tenant_id), erasure_id=str(one.pk))
    with system_scope("look"):
        return list(Erasure.objects.filter(subject=Subject.AGED).order_by("created_at"))


def yesterday(rows: Rows) -> None:
    """Let every sweep have been a day and a minute ago."""
    with tenant_scope(rows.tenant.pk):
        for one in Erasure.objects.filter(subject=Subject.AGED):
            Erasure.objects.filter(pk=one.pk).update(
                created_at=one.created_at - DAY - dt.timedelta(minutes=1)
            )


def there(rows: Rows) -> set[uuid.UUID]:
    with tenant_scope(rows.tenant.pk):
        return set(Session.objects.values_list("pk", flat=True))
