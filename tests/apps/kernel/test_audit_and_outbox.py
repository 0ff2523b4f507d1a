import datetime as dt

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from apps.accounts.models import Tenant
from kernel import audit
from kernel.models import AuditEntry, OutboxMessage
from kernel.outbox import enqueue
from kernel.tenancy import system_scope, tenant_scope


@pytest.fixture
def tenant(db: None) -> Tenant:
    with system_scope("test"):
        return Tenant.objects.create(slug="acme", name="Acme")


@pytest.mark.parametrize("system", [False, True], ids=["as a tenant", "as the system"])
def test_audit_entries_can_be_added_and_never_changed_or_deleted(tenant: Tenant, system: bool) -> None:
    scope = system_scope("test") if system else tenant_scope(tenant.pk)
    with scope:
        entry = audit.record(
            actor="user:1", action="x.do", target="x:1", tenant_id=tenant.pk, detail={"why": "so"}
        )
        entry.action = "x.undo"
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            entry.save(force_update=True)
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            AuditEntry.objects.all()._raw_delete("default")
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            connection.cursor().execute("TRUNCATE kernel_auditentry")
        kept = AuditEntry.objects.get(pk=entry.pk)
    assert (kept.actor, kept.action, kept.target, kept.detail) == ("user:1", "x.do", "x:1", {"why": "so"})


def test_an_audit_entry_goes_with_its_transaction(tenant: Tenant) -> None:
    with system_scope("test"):
        before = AuditEntry.objects.count()
        with transaction.atomic():
            audit.record(actor="user:1", action="x.do", target="x:1", tenant_id=None)
            assert AuditEntry.objects.count() == before + 1
            transaction.set_rollback(True)
        assert AuditEntry.objects.count() == before


def test_an_announcement_carries_its_tenant_and_its_time(tenant: Tenant) -> None:
    before = timezone.now()
    with tenant_scope(tenant.pk), transaction.atomic():
        enqueue(task="workers.x", queue="ops", tenant_id=tenant.pk, kwargs={"turn_id": "1"}, delay_s=60.0)
        message = OutboxMessage.objects.get()
    assert (message.task, message.queue) == ("workers.x", "ops")
    assert message.kwargs == {"turn_id": "1", "tenant_id": str(tenant.pk)}
    assert message.sent_at is None
    assert dt.timedelta(seconds=59) < message.available_at - before < dt.timedelta(seconds=62)


def test_the_same_unsent_work_is_announced_once(tenant: Tenant) -> None:
    with tenant_scope(tenant.pk), transaction.atomic():
        for _ in range(2):
            enqueue(task="workers.x", queue="ops", tenant_id=tenant.pk, kwargs={}, dedupe_key="x:1")
        assert OutboxMessage.objects.count() == 1
        OutboxMessage.objects.update(sent_at=timezone.now())
        enqueue(task="workers.x", queue="ops", tenant_id=tenant.pk, kwargs={}, dedupe_key="x:1")
        assert OutboxMessage.objects.count() == 2


def test_announcements_without_a_key_are_not_merged(tenant: Tenant) -> None:
    with tenant_scope(tenant.pk), transaction.atomic():
        for _ in range(2):
            enqueue(task="workers.x", queue="ops", tenant_id=tenant.pk, kwargs={})
        assert OutboxMessage.objects.count() == 2
