"""A key of some policies: whose they are, what it may not do beside, and what becomes of the limit."""

import uuid
from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction

from apps.adapters.models import Policy
from apps.keys.models import ApiKey, KeyPolicy
from apps.keys.services import authenticate, create_key, rotate_key, set_policies
from kernel.errors import InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db
ME = "user:me"


@pytest.fixture
def somebody(db: None) -> Somebody:
    del db
    return add_somebody()


def another(somebody: Somebody, name: str) -> Policy:
    with tenant_scope(somebody.tenant.id):
        return Policy.objects.create(name=name, base_model="b")


def may(secret: str) -> frozenset[uuid.UUID] | None:
    return authenticate(f"Bearer {secret}").policies


def limit(somebody: Somebody, policies: list[uuid.UUID] | None) -> ApiKey:
    return set_policies(tenant_id=somebody.tenant.id, key_id=somebody.key.id, policies=policies, actor=ME)


def refused(words: str, act: Callable[[], object]) -> None:
    """Assert that Postgres refuses an act, at once or when its transaction ends."""

    def whole() -> None:
        with transaction.atomic():
            act()
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    with pytest.raises(IntegrityError, match=words):
        whole()


def test_a_limit_is_set_widened_and_lifted(somebody: Somebody) -> None:
    coder, default = another(somebody, "coder"), somebody.policy
    assert may(somebody.secret) is None
    limit(somebody, [coder.pk])
    assert may(somebody.secret) == {coder.pk}
    limit(somebody, [default.pk, coder.pk, coder.pk])
    assert may(somebody.secret) == {coder.pk, default.pk}
    limit(somebody, [default.pk])
    assert may(somebody.secret) == {default.pk}
    limit(somebody, None)
    assert may(somebody.secret) is None
    with tenant_scope(somebody.tenant.id):
        assert not KeyPolicy.objects.exists()
        rows = AuditEntry.objects.filter(action="key.policies").order_by("id")
        assert [row.detail["policies"] for row in rows] == [
            ["coder"],
            ["coder", "default"],
            ["default"],
            None,
        ]


def test_a_key_is_made_with_it_and_hands_it_over(somebody: Somebody) -> None:
    coder = another(somebody, "coder")
    key, secret = create_key(
        tenant=somebody.tenant, user=somebody.user, name="ci", scopes=["chat", "rollout"], policies=[coder.pk]
    )
    assert may(secret) == {coder.pk}
    _, later = rotate_key(
        tenant_id=somebody.tenant.id, key_id=key.pk, user_id=somebody.user.id, actor=ME, overlap_s=60
    )
    assert may(later) == may(secret) == {coder.pk}


def test_a_key_whose_policies_are_gone_may_name_none(somebody: Somebody) -> None:
    coder = another(somebody, "coder")
    limit(somebody, [coder.pk])
    with tenant_scope(somebody.tenant.id):
        coder.delete()
    assert may(somebody.secret) == frozenset()


def test_a_key_that_manages_is_not_limited(somebody: Somebody) -> None:
    made = {"tenant": somebody.tenant, "user": somebody.user, "name": "both", "scopes": ["chat", "manage"]}
    with pytest.raises(InvalidInput, match="scope `manage` changes all") as error:
        create_key(**made, policies=[somebody.policy.pk])  # type: ignore[arg-type]
    assert error.value.field == "policies"
    key, secret = create_key(**made)  # type: ignore[arg-type]
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 2
        itself = ApiKey.objects.filter(pk=key.pk)
        refused("key_of_some_policies_does_not_manage", lambda: itself.update(some_policies=True))
    limit(somebody, [somebody.policy.pk])
    with tenant_scope(somebody.tenant.id):
        limited = ApiKey.objects.filter(pk=somebody.key.pk)
        refused("key_of_some_policies_does_not_manage", lambda: limited.update(scopes=["chat", "manage"]))
    assert may(secret) is None


def test_what_cannot_be_a_limit_changes_nothing(somebody: Somebody) -> None:
    limit(somebody, [somebody.policy.pk])
    other = add_somebody("globex")
    for wrong in ([], [uuid.uuid4() for _ in range(101)]):
        with pytest.raises(InvalidInput, match="1 to 100 policies") as error:
            limit(somebody, wrong)
        assert error.value.field == "policies"
    for unknown in (uuid.uuid4(), other.policy.pk):
        with pytest.raises(NotFound) as missing:
            limit(somebody, [somebody.policy.pk, unknown])
        assert missing.value.field == "policies"
    assert may(somebody.secret) == {somebody.policy.pk}


def test_postgres_holds_key_and_policy_to_one_tenant(somebody: Somebody) -> None:
    other = add_somebody("globex")
    theirs = KeyPolicy(key=somebody.key, policy=other.policy)
    mine = KeyPolicy(key=other.key, policy=somebody.policy)
    with tenant_scope(somebody.tenant.id):
        refused("key_policy_policy_of_the_tenant", theirs.save)
        refused("key_policy_key_of_the_tenant", mine.save)
        twice = KeyPolicy(key=somebody.key, policy=somebody.policy)
        KeyPolicy.objects.create(key=somebody.key, policy=somebody.policy)
        refused("key_policy_once", twice.save)


def test_postgres_holds_a_key_and_its_successor_to_one_tenant(somebody: Somebody) -> None:
    other = add_somebody("globex")
    with tenant_scope(somebody.tenant.id):
        somebody.key.successor = other.key
        refused("key_successor_of_the_tenant", somebody.key.save)
        mine, _ = create_key(tenant=somebody.tenant, user=somebody.user, name="next", scopes=["chat"])
        somebody.key.successor = mine
        somebody.key.save()
        mine.delete()
        somebody.key.refresh_from_db()
        assert somebody.key.successor is None
