"""Keys end with the membership of their person: who is asked in again makes new ones."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from apps.accounts.models import Membership, Role
from apps.accounts.services import remove_member, set_role
from apps.keys.models import ApiKey
from apps.keys.services import authenticate, create_key, revoke_key
from kernel.errors import Unauthenticated
from kernel.tenancy import tenant_scope
from tests.locks import wait_for_a_lock
from tests.tenants import Somebody, add_somebody, rotated


@pytest.fixture
def somebody(db: None) -> Somebody:
    del db
    return add_somebody()


def join(somebody: Somebody, role: Role = Role.MEMBER) -> None:
    set_role(tenant_id=somebody.tenant.id, user=somebody.user, role=role, actor="user:owner")


def take_out(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        member = Membership.objects.get(user=somebody.user)
    remove_member(tenant_id=somebody.tenant.id, membership_id=member.pk, actor="user:owner")


def keys(somebody: Somebody) -> dict[str, bool]:
    """Return which keys of a person are revoked, by name."""
    with tenant_scope(somebody.tenant.id):
        rows = ApiKey.objects.filter(user=somebody.user)
        return {key.name: key.revoked_at is not None for key in rows}


def test_who_is_asked_in_again_has_no_old_key(somebody: Somebody) -> None:
    take_out(somebody)
    assert keys(somebody) == {"tests": True}
    join(somebody, Role.OWNER)
    with pytest.raises(Unauthenticated):
        authenticate(f"Bearer {somebody.secret}")
    _, secret = create_key(tenant=somebody.tenant, user=somebody.user, name="new", scopes=["chat"])
    assert authenticate(f"Bearer {secret}").scopes == {"chat"}


def test_no_other_key_ends(somebody: Somebody) -> None:
    beside, elsewhere = add_somebody(tenant=somebody.tenant), add_somebody("globex")
    set_role(tenant_id=elsewhere.tenant.id, user=somebody.user, role=Role.MEMBER, actor="user:x")
    create_key(tenant=elsewhere.tenant, user=somebody.user, name="mine there", scopes=["chat"])
    take_out(somebody)
    assert authenticate(f"Bearer {beside.secret}").user_id == beside.user.id
    there = Somebody(elsewhere.tenant, somebody.user, elsewhere.policy, elsewhere.key, "")
    assert keys(there) == {"mine there": False}
    assert keys(elsewhere) == {"tests": False}


def test_when_a_key_was_revoked_stays_as_it_was(somebody: Somebody) -> None:
    key = revoke_key(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:x")
    take_out(somebody)
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.get().revoked_at == key.revoked_at


@pytest.mark.django_db(transaction=True)
def test_whatever_deletes_the_membership_ends_them(owner_connection: psycopg.Connection) -> None:
    somebody = add_somebody()
    owner_connection.execute("DELETE FROM accounts_membership")
    assert keys(somebody) == {"tests": True}


def make(somebody: Somebody) -> None:
    create_key(tenant=somebody.tenant, user=somebody.user, name="late", scopes=["chat"])


def rotate(somebody: Somebody) -> None:
    rotated(somebody, overlap_s=3600)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("act", "names"), [(make, ["late", "tests"]), (rotate, ["tests", "tests"])])
def test_a_key_that_is_made_meanwhile_ends_too(act: Callable[[Somebody], None], names: list[str]) -> None:
    somebody = add_somebody()
    done: list[Any] = []

    def leave() -> None:
        try:
            take_out(somebody)
            done.append("out")
        finally:
            connection.close()

    leaving = threading.Thread(target=leave)
    with transaction.atomic():
        act(somebody)
        leaving.start()
        wait_for_a_lock()
        assert done == []
    leaving.join(20)
    assert done == ["out"]
    with tenant_scope(somebody.tenant.id):
        found = ApiKey.objects.values_list("name", "revoked_at").order_by("name")
        assert [(name, revoked_at is not None) for name, revoked_at in found] == [
            (name, True) for name in names
        ]
