"""A tenant is paused with a reason and resumed, once, and both leave a row in the audit log."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.accounts import pausing
from apps.accounts.models import Tenant
from kernel.errors import Conflict, Forbidden, InvalidInput
from kernel.ids import uuid7
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody, add_somebody


@pytest.fixture
def somebody(db: None) -> Somebody:
    return add_somebody()


def acts(somebody: Somebody) -> list[tuple[str, str]]:
    with tenant_scope(somebody.tenant.pk):
        rows = AuditEntry.objects.filter(action__in=("tenant.pause", "tenant.resume")).order_by("id")
        return [(row.action, row.detail["reason"]) for row in rows]


def test_it_is_paused_once_and_resumed_once(somebody: Somebody) -> None:
    tenant_id = somebody.tenant.pk
    paused = pausing.pause_tenant(reason=" unpaid\n bills\x00 ", tenant_id=tenant_id, actor="user:1")
    assert (paused.is_paused, paused.pause_reason) == (True, "unpaid bills")
    with pytest.raises(
        Conflict,
        match=r"^The tenant acme is paused already: unpaid bills\. Resume it first to give another reason\.$",
    ):
        pausing.pause_tenant(reason="again", tenant_id=tenant_id, actor="user:1")
    with pytest.raises(
        Forbidden, match=r"^This tenant is paused: unpaid bills\. Ask whoever runs this installation\.$"
    ) as refused:
        pausing.refuse_while_paused(somebody.tenant.pk)
    assert refused.value.code == "tenant_paused"
    resumed = pausing.resume_tenant(reason="paid", tenant_id=tenant_id, actor="user:1")
    assert (resumed.is_paused, resumed.pause_reason) == (False, "")
    pausing.refuse_while_paused(somebody.tenant.pk)
    with pytest.raises(Conflict, match=r"^The tenant acme is not paused\. There is nothing to resume\.$"):
        pausing.resume_tenant(reason="paid", tenant_id=tenant_id, actor="user:1")
    assert acts(somebody) == [("tenant.pause", "unpaid bills"), ("tenant.resume", "paid")]


@pytest.mark.parametrize("reason", ["Unpaid.", "Unpaid!"])
def test_a_refusal_names_whom_to_ask_and_ends_a_reason_once(
    somebody: Somebody, settings: Any, reason: str
) -> None:
    settings.OPERATOR_CONTACT = "ops@example.org"
    pausing.pause_tenant(tenant_id=somebody.tenant.pk, reason=reason, actor="user:1")
    with pytest.raises(Forbidden) as refused:
        pausing.refuse_while_paused(somebody.tenant.pk)
    assert refused.value.message == f"This tenant is paused: {reason} Ask ops@example.org."


@pytest.mark.parametrize("reason", ["", " \n\x00", "x" * 401])
def test_a_reason_that_is_none_pauses_nothing(somebody: Somebody, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        pausing.pause_tenant(tenant_id=somebody.tenant.pk, reason=reason, actor="user:1")
    assert refused.value.field == "reason"
    pausing.refuse_while_paused(somebody.tenant.pk)
    assert acts(somebody) == []


@pytest.mark.parametrize("half", [{"pause_reason": "why"}, {"paused_at": timezone.now()}])
def test_no_row_is_paused_without_a_reason_or_has_one_unpaused(
    somebody: Somebody, half: dict[str, object]
) -> None:
    with (
        system_scope("tests"),
        pytest.raises(IntegrityError, match="tenant_paused_with_a_reason"),
        transaction.atomic(),
    ):
        Tenant.objects.filter(pk=somebody.tenant.pk).update(**half)


@pytest.mark.django_db
def test_a_process_from_before_pauses_still_makes_tenants() -> None:
    """While a deployment is rolled, the database is ahead of it."""
    with system_scope("tests"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_tenant (id, slug, name, training_enabled, created_at)"
            " VALUES (%s, 'older', 'Older', true, now())",
            [uuid7()],
        )
        assert Tenant.objects.get(slug="older").pause_reason == ""
