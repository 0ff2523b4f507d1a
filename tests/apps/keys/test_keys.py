"""Keys: made once, shown once, checked every time."""

import datetime as dt
import hashlib
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.accounts.models import Membership, Role, User
from apps.accounts.services import set_role
from apps.keys.models import ApiKey, KeyScope, Limit
from apps.keys.services import authenticate, create_key, revoke_key, rotate_key, set_limit
from apps.keys.tenant_limit import set_own_limit
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from kernel.models import AuditEntry
from kernel.redaction import redact
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody, add_somebody, rotated

pytestmark = pytest.mark.django_db


@pytest.fixture
def somebody() -> Somebody:
    return add_somebody()


def bearer(somebody: Somebody) -> str:
    return f"Bearer {somebody.secret}"


def row(somebody: Somebody) -> ApiKey:
    with tenant_scope(somebody.tenant.id):
        return ApiKey.objects.get(id=somebody.key.id)


def test_a_key_says_who_it_speaks_for(somebody: Somebody) -> None:
    caller = authenticate(bearer(somebody))

    assert (caller.tenant_id, caller.user_id, caller.key_id) == (
        somebody.tenant.id,
        somebody.user.id,
        somebody.key.id,
    )
    assert caller.scopes == {"chat"}
    assert caller.actor == f"key:{somebody.key.public_id}"


@pytest.mark.parametrize("name", ["", "n" * 101])
def test_a_name_of_another_length_is_refused(somebody: Somebody, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_key(tenant=somebody.tenant, user=somebody.user, name=name, scopes=["chat"])

    assert (refused.value.field, refused.value.message) == ("name", "A key's name has 1 to 100 characters.")


def test_only_the_hash_of_the_secret_half_is_stored(somebody: Somebody) -> None:
    prefix, public_id, secret = somebody.secret.split("-", 2)

    assert (prefix, public_id) == ("at", somebody.key.public_id)
    assert bytes(row(somebody).secret_sha256) == hashlib.sha256(secret.encode()).digest()
    assert secret not in str(vars(row(somebody)))
    assert secret not in repr(somebody.key)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "  bEaReR  "])
def test_the_scheme_is_read_in_any_case(somebody: Somebody, scheme: str) -> None:
    assert authenticate(f"{scheme} {somebody.secret} ").key_id == somebody.key.id


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer  ", "Basic abc", "Bearer sk-123", "Bearer at-abc", "Bearer at-abcdef-"),
        *("at-abcdefgh-0123456789abcdef", "Bearer at-abcdefgh-0123456789abcdef extra", "Bearer at-\x00-x"),
    ],
)
def test_what_is_no_key_is_refused(header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        authenticate(header)
    assert (refusal.value.code, refusal.value.status) == ("invalid_api_key", 401)


def test_a_wrong_secret_of_a_known_key_is_refused_without_repeating_it(somebody: Somebody) -> None:
    wrong = somebody.secret[:-4] + "zzzz"

    with pytest.raises(Unauthenticated) as refusal:
        authenticate(f"Bearer {wrong}")

    assert wrong not in str(refusal.value)
    assert row(somebody).last_used_at is None


def test_a_revoked_key_is_refused_at_once(somebody: Somebody) -> None:
    authenticate(bearer(somebody))
    revoke_key(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:x")

    with pytest.raises(Unauthenticated):
        authenticate(bearer(somebody))
    revoke_key(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:x")
    with system_scope("look"):
        assert AuditEntry.objects.filter(action="key.revoke").count() == 1


def test_an_expired_key_is_refused(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        ApiKey.objects.filter(id=somebody.key.id).update(expires_at=timezone.now())

    with pytest.raises(Unauthenticated):
        authenticate(bearer(somebody))


def test_the_key_of_a_removed_member_is_refused(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        Membership.objects.all().delete()

    with pytest.raises(Unauthenticated):
        authenticate(bearer(somebody))


def test_the_key_of_a_disabled_account_is_refused(somebody: Somebody) -> None:
    somebody.user.is_active = False
    somebody.user.save()

    with pytest.raises(Unauthenticated):
        authenticate(bearer(somebody))


def test_last_use_is_written_at_most_once_a_minute(somebody: Somebody) -> None:
    authenticate(bearer(somebody))
    first = row(somebody).last_used_at
    authenticate(bearer(somebody))

    assert first is not None
    assert row(somebody).last_used_at == first
    with tenant_scope(somebody.tenant.id):
        ApiKey.objects.update(last_used_at=first - dt.timedelta(seconds=61))
    authenticate(bearer(somebody))
    latest = row(somebody).last_used_at
    assert latest is not None
    assert latest > first


def test_a_rotated_key_works_until_its_overlap_ends(somebody: Somebody) -> None:
    fresh, secret = rotated(somebody, overlap_s=60)

    assert authenticate(bearer(somebody)).key_id == somebody.key.id
    assert authenticate(f"Bearer {secret}").key_id == fresh.id
    assert fresh.scopes == somebody.key.scopes
    with tenant_scope(somebody.tenant.id):
        ApiKey.objects.filter(id=somebody.key.id).update(expires_at=timezone.now())
    with pytest.raises(Unauthenticated):
        authenticate(bearer(somebody))
    with pytest.raises(Conflict):
        rotated(somebody, overlap_s=60)


def test_a_key_is_rotated_once(somebody: Somebody) -> None:
    fresh, _ = rotated(somebody, overlap_s=3600)
    assert fresh.expires_at is None
    ends = row(somebody).expires_at

    with pytest.raises(Conflict, match=f"rotated already, into {fresh}") as refused:
        rotated(somebody, overlap_s=60)

    assert refused.value.code == "rotated_already"
    assert row(somebody).expires_at == ends
    newest, secret = rotated(replace(somebody, key=fresh), overlap_s=0)
    assert newest.expires_at is None
    assert authenticate(f"Bearer {secret}").key_id == newest.id
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_rotations_at_once_one_makes_a_successor(somebody: Somebody) -> None:
    def rotate(_: int) -> str:
        try:
            return str(rotated(somebody, overlap_s=60)[0])
        except Conflict as refused:
            return refused.code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(rotate, range(4)))

    assert done.count("rotated_already") == 3
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 2


def test_a_key_is_rotated_by_its_own_person_alone(somebody: Somebody) -> None:
    with system_scope("tests"):
        admin = User.objects.create_user("admin@example.org")
    set_role(tenant_id=somebody.tenant.id, user=admin, role=Role.OWNER, actor="system:test")

    with pytest.raises(Forbidden, match="Revoke it instead"):
        rotate_key(
            tenant_id=somebody.tenant.id,
            key_id=somebody.key.id,
            user_id=admin.id,
            actor=f"user:{admin.id}",
            overlap_s=60,
        )

    assert row(somebody).expires_at is None
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 1


def test_a_rotated_key_keeps_its_limits(somebody: Somebody) -> None:
    numbers = {"requests_per_minute": 7, "tokens_per_minute": None, "concurrent": 0}
    set_limit(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:x", **numbers)

    fresh, _ = rotated(somebody, overlap_s=60)

    with tenant_scope(somebody.tenant.id):
        assert Limit.objects.filter(key=fresh).values(*numbers).get() == numbers
        assert Limit.objects.filter(key=somebody.key).values(*numbers).get() == numbers


def test_a_key_of_another_tenant_is_not_found_and_stays_as_it_is(somebody: Somebody) -> None:
    other = add_somebody("other")

    for act in (
        lambda: revoke_key(tenant_id=other.tenant.id, key_id=somebody.key.id, actor="user:x"),
        lambda: rotate_key(
            tenant_id=other.tenant.id,
            key_id=somebody.key.id,
            user_id=somebody.user.id,
            actor="user:x",
            overlap_s=0,
        ),
    ):
        with pytest.raises(NotFound):
            act()
    assert authenticate(bearer(somebody)).key_id == somebody.key.id
    assert row(somebody).expires_at is None


def test_the_database_itself_shows_no_key_of_another_tenant(somebody: Somebody) -> None:
    other = add_somebody("other")

    with tenant_scope(other.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT public_id FROM keys_apikey")
        assert cursor.fetchall() == [(other.key.public_id,)]
    with connection.cursor() as cursor:  # no scope at all
        cursor.execute("SELECT count(*) FROM keys_apikey")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize(
    ("scopes", "days"), [((), 1), (("chat",), -1)], ids=["no scope", "expiry in the past"]
)
def test_a_senseless_key_is_not_made(somebody: Somebody, scopes: tuple[str, ...], days: int) -> None:
    with pytest.raises(InvalidInput):
        create_key(
            tenant=somebody.tenant,
            user=somebody.user,
            name="x",
            scopes=scopes,
            expires_at=timezone.now() + dt.timedelta(days=days),
        )
    with tenant_scope(somebody.tenant.id):
        assert ApiKey.objects.count() == 1


def test_somebody_else_gets_no_key_of_a_tenant(somebody: Somebody) -> None:
    stranger = add_somebody("other").user

    with pytest.raises(InvalidInput):
        create_key(tenant=somebody.tenant, user=stranger, name="x", scopes=["chat"])


def test_making_a_key_leaves_an_audit_row_without_its_secret(somebody: Somebody) -> None:
    with system_scope("look"):
        entry = AuditEntry.objects.get(action="key.create")

    assert entry.target == f"key:{somebody.key.public_id}"
    assert entry.detail == {"name": "tests", "scopes": ["chat"]}
    assert somebody.secret.split("-", 2)[2] not in str(vars(entry))


def test_a_scope_that_is_missing_is_named(somebody: Somebody) -> None:
    caller = authenticate(bearer(somebody))

    caller.require(KeyScope.CHAT)
    with pytest.raises(Forbidden) as refusal:
        caller.require(KeyScope.EVALUATE)
    assert refusal.value.message == (
        "This key lacks the scope `evaluate`, or its person's role does not give it. "
        "Make a key that has it under Keys, or ask an owner for another role."
    )


def test_a_key_in_a_log_line_is_redacted(somebody: Somebody, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("got %s", somebody.secret)

    assert redact(caplog.records[-1].getMessage()) == f"got at-{somebody.key.public_id}-…"


def test_a_tenant_has_one_row_of_each_side_and_no_key_has_its_own(somebody: Somebody) -> None:
    for by_tenant in (False, True):
        with tenant_scope(somebody.tenant.id):
            Limit.objects.create(key=None, by_tenant=by_tenant)
            with pytest.raises(IntegrityError, match="limit_once_per_tenant_and_side"), transaction.atomic():
                Limit.objects.create(key=None, by_tenant=by_tenant)
    with (
        tenant_scope(somebody.tenant.id),
        pytest.raises(IntegrityError, match="limit_by_tenant_is_of_all_keys"),
        transaction.atomic(),
    ):
        Limit.objects.create(key=somebody.key, by_tenant=True)


def test_the_look_up_tells_the_operators_numbers_from_the_tenants(somebody: Somebody) -> None:
    set_limit(tenant_id=somebody.tenant.id, key_id=None, actor="user:x", requests_per_minute=10, concurrent=4)
    set_limit(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:x", concurrent=1)
    set_own_limit(tenant_id=somebody.tenant.id, actor="user:y", numbers={"requests_per_minute": 3})
    set_limit(tenant_id=somebody.tenant.id, key_id=None, actor="user:x", requests_per_minute=9)
    with connection.cursor() as cursor:
        asked = json.dumps({"public_id": somebody.key.public_id, "policy_name": "default"})
        cursor.execute("SELECT attune_look_up(%s::jsonb)->'limits'", [asked])
        found = cursor.fetchone()[0]
    assert (json.loads(found) if isinstance(found, str) else found) == {
        "tenant": {"requests": 9, "tokens": None, "concurrent": None},
        "own": {"requests": 3, "tokens": None, "concurrent": None},
        "key": {"requests": None, "tokens": None, "concurrent": 1},
    }
