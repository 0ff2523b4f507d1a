"""A key may what its scopes say and its person's role gives: read with every request, in Postgres."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Membership, Role
from apps.accounts.services import set_role
from apps.keys.models import ApiKey, KeyScope
from apps.keys.selectors import effective, idle, n_held_back, with_roles
from apps.keys.services import authenticate, create_key
from kernel.calls import Call, call, run
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope
from tests.tenants import Somebody, add_somebody, rotated

pytestmark = pytest.mark.django_db
EVERY = frozenset({"chat", "rollout", "read", "manage", "evaluate"})
GIVEN = {"owner": EVERY, "admin": EVERY, "member": EVERY, "viewer": frozenset({"read"})}


@pytest.fixture
def somebody(db: None) -> Somebody:
    del db
    return add_somebody(scopes=tuple(sorted(EVERY)))


def become(somebody: Somebody, role: str) -> None:
    set_role(tenant_id=somebody.tenant.id, user=somebody.user, role=Role(role), actor="user:owner")


def at_the_gateway(somebody: Somebody) -> frozenset[str]:
    """Return the scopes that the gateway's look-up finds."""

    def looked_up() -> Any:
        asked: Call = call("attune_look_up", {"public_id": somebody.key.public_id})
        return (yield asked)

    return frozenset(run(looked_up())["key"]["scopes"])


def under_api(somebody: Somebody) -> frozenset[str]:
    return authenticate(f"Bearer {somebody.secret}").scopes


def test_every_role_and_every_scope_is_decided() -> None:
    assert {*GIVEN} == {*Role.values}
    assert {*EVERY} == {*KeyScope.values}


@pytest.mark.parametrize("role", Role.values)
def test_both_look_ups_give_what_the_role_gives(somebody: Somebody, role: str) -> None:
    become(somebody, role)
    assert under_api(somebody) == at_the_gateway(somebody) == GIVEN[role]


def test_a_role_gives_no_scope_that_the_key_lacks(somebody: Somebody) -> None:
    key, secret = create_key(
        tenant=somebody.tenant, user=somebody.user, name="ci", scopes=["chat", "rollout"]
    )
    other = Somebody(somebody.tenant, somebody.user, somebody.policy, key, secret)
    for role, scopes in (("owner", {"chat", "rollout"}), ("viewer", set())):
        become(somebody, role)
        assert under_api(other) == at_the_gateway(other) == scopes


@pytest.mark.parametrize("of_role", ["", "operator", None], ids=str)
def test_a_role_that_nobody_knows_gives_nothing(db: None, of_role: str | None) -> None:
    del db
    with connection.cursor() as cursor:
        cursor.execute("SELECT attune_scopes_of(%s)", [of_role])
        assert cursor.fetchone() == ([],)


def test_a_lowered_role_holds_with_the_next_request_and_a_raised_one_too(somebody: Somebody) -> None:
    for role in ("viewer", "member", "viewer", "owner"):
        become(somebody, role)
        assert under_api(somebody) == at_the_gateway(somebody) == GIVEN[role]
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.get().scopes == sorted(EVERY)  # what it was made for is not written over


def test_a_role_is_of_one_tenant(somebody: Somebody) -> None:
    elsewhere = add_somebody("globex", scopes=("chat",))
    set_role(tenant_id=elsewhere.tenant.id, user=somebody.user, role=Role.VIEWER, actor="user:x")
    assert under_api(somebody) == at_the_gateway(somebody) == EVERY
    become(somebody, "viewer")
    set_role(tenant_id=elsewhere.tenant.id, user=somebody.user, role=Role.OWNER, actor="user:x")
    assert under_api(somebody) == at_the_gateway(somebody) == {"read"}
    assert under_api(elsewhere) == {"chat"}


def test_a_key_is_not_made_for_what_the_role_does_not_give(somebody: Somebody) -> None:
    become(somebody, "viewer")
    make: dict[str, Any] = {"tenant": somebody.tenant, "user": somebody.user, "name": "new"}
    for scope in sorted(EVERY - {"read"}):
        with pytest.raises(InvalidInput, match=f"`viewer` does not give the scope `{scope}`") as error:
            create_key(**make, scopes=["read", scope])
        assert error.value.field == "scopes"
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 1
    _, secret = create_key(**make, scopes=["read"])
    assert authenticate(f"Bearer {secret}").scopes == {"read"}


def test_a_successor_may_no_more(somebody: Somebody) -> None:
    become(somebody, "viewer")
    _, secret = rotated(somebody, overlap_s=0)
    assert authenticate(f"Bearer {secret}").scopes == {"read"}


def test_what_does_not_count_is_told_apart(somebody: Somebody) -> None:
    def seen() -> tuple[list[str], list[str], str | None, int]:
        with tenant_scope(somebody.tenant.id):
            key = with_roles(ApiKey.objects.all()).get()
            role: str | None = key.role  # type: ignore[attr-defined]
            return effective(key), idle(key), role, n_held_back(somebody.user.id)

    assert seen() == (sorted(EVERY), [], "member", 0)
    become(somebody, "viewer")
    assert seen() == (["read"], ["chat", "evaluate", "manage", "rollout"], "viewer", 1)
    with tenant_scope(somebody.tenant.id):
        Membership.objects.all().delete()
    assert seen() == ([], sorted(EVERY), None, 0)  # revoked with the membership


def test_a_look_up_is_still_one_query(somebody: Somebody) -> None:
    authenticate(f"Bearer {somebody.secret}")  # the first notes when it was used
    with CaptureQueriesContext(connection) as queries:
        authenticate(f"Bearer {somebody.secret}")
    assert len(queries) == 1
