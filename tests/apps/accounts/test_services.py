import threading

import pytest
from allauth.account.models import EmailAddress
from django.db import connection, transaction

from apps.accounts.models import Membership, Role, Tenant, User
from apps.accounts.selectors import memberships_of, tenant_by_slug, user_by_email
from apps.accounts.services import create_tenant, create_user, new_password, set_password, set_role
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.locks import wait_for_a_lock

pytestmark = pytest.mark.django_db
WHO = "system:test"


def test_a_person_is_made_with_a_verified_address_and_an_audit_row() -> None:
    with system_scope("test"):
        user = create_user(
            email=" Ada@Example.ORG ", password="correct horse battery", operator=False, actor=WHO
        )
        entry = AuditEntry.objects.get(action="user.create")
    assert user.email == "ada@example.org"
    assert user.check_password("correct horse battery")
    assert (user.is_staff, user.is_superuser) == (False, False)
    address = EmailAddress.objects.get(user=user)
    assert (address.email, address.verified, address.primary) == ("ada@example.org", True, True)
    assert (entry.actor, entry.target) == (WHO, f"user:{user.pk}")
    assert entry.detail == {"email": "ada@example.org", "operator": False}


def test_addresses_are_checked_and_unique_whatever_their_case() -> None:
    with system_scope("test"):
        with pytest.raises(InvalidInput, match="not an email address"):
            create_user(email="ada", password=None, operator=False, actor=WHO)
        create_user(email="ada@example.org", password=None, operator=False, actor=WHO)
        with pytest.raises(Conflict, match="already has an account"):
            create_user(email="ADA@example.org", password=None, operator=True, actor=WHO)
    assert User.objects.count() == 1
    assert user_by_email("Ada@Example.org").email == "ada@example.org"
    with pytest.raises(NotFound):
        user_by_email("grace@example.org")


def test_a_new_password_replaces_the_old_one() -> None:
    with system_scope("test"):
        user = create_user(email="ada@example.org", password="one password here", operator=True, actor=WHO)
        set_password(user=user, password="another password here", actor=WHO)
        user.refresh_from_db()
        assert (user.check_password("one password here"), user.check_password("another password here")) == (
            False,
            True,
        )
        detail = AuditEntry.objects.get(action="user.set_password").detail
    assert detail == {}


def test_passwords_are_long_and_never_the_same() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    assert {len(one) for one in made} == {22}


@pytest.mark.parametrize("slug", ["", "Demo", "1st", "de mo", "-demo", "d" * 41, "dé"])
def test_slugs_that_break_the_rule_are_refused(slug: str) -> None:
    with system_scope("test"):
        with pytest.raises(InvalidInput):
            create_tenant(slug=slug, name="Demo", actor=WHO)
        assert not Tenant.objects.exists()


def test_a_slug_names_one_tenant() -> None:
    with system_scope("test"):
        made = create_tenant(slug="demo", name="", actor=WHO)
        with pytest.raises(Conflict, match="already a tenant 'demo'"):
            create_tenant(slug="demo", name="Another", actor=WHO)
        assert tenant_by_slug("demo") == made
        assert made.name == "demo"
        with pytest.raises(NotFound, match="no tenant 'demi'"):
            tenant_by_slug("demi")


def test_a_role_is_given_once_and_changed_after() -> None:
    with system_scope("test"):
        tenant = create_tenant(slug="demo", name="Demo", actor=WHO)
        user = create_user(email="ada@example.org", password=None, operator=False, actor=WHO)
    set_role(tenant_id=tenant.pk, user=user, role=Role.MEMBER, actor=WHO)
    set_role(tenant_id=tenant.pk, user=user, role=Role.ADMIN, actor=WHO)
    with tenant_scope(tenant.pk):
        assert Membership.objects.get().role == "admin"
        entries = AuditEntry.objects.filter(action__startswith="member.").order_by("id")
        assert [(entry.action, entry.detail) for entry in entries] == [
            ("member.add", {"role": "member"}),
            ("member.change", {"role": "admin"}),
        ]


def test_a_persons_tenants_are_found_without_a_scope_and_only_theirs() -> None:
    with system_scope("test"):
        ada = create_user(email="ada@example.org", password=None, operator=False, actor=WHO)
        bob = create_user(email="bob@example.org", password=None, operator=False, actor=WHO)
        first, second, other = (create_tenant(slug=slug, name=slug, actor=WHO) for slug in ("a", "b", "c"))
    for tenant, user in ((first, ada), (second, ada), (other, bob), (second, bob)):
        set_role(tenant_id=tenant.pk, user=user, role=Role.MEMBER, actor=WHO)
    assert [one.tenant.slug for one in memberships_of(ada)] == ["a", "b"]
    assert [one.tenant.slug for one in memberships_of(bob)] == ["c", "b"]


@pytest.mark.django_db(transaction=True)
def test_a_slug_that_is_taken_at_that_moment_is_a_taken_one() -> None:
    said: list[str] = []

    def second() -> None:
        try:
            with system_scope("tests"):
                create_tenant(slug="same", name="", actor="system:test")
        except Conflict as refused:
            said.append(refused.message)
        finally:
            connection.close()

    beside = threading.Thread(target=second)
    with system_scope("tests"), transaction.atomic():
        create_tenant(slug="same", name="", actor="system:test")
        beside.start()
        wait_for_a_lock()
    beside.join()
    assert said == ["there is already a tenant 'same'"]
