"""Who works on the same conversation at once waits in a row, never in a circle;
and a request waits for hardly anybody."""

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.invitations import invite
from apps.accounts.models import Role
from apps.accounts.services import change_tenant, set_role
from apps.adapters.services import move_pointer
from apps.conversations.models import Session, Turn
from apps.conversations.services import Admitted
from apps.governance.erasure import work
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.models import Erasure, ErasureState, Subject
from apps.learning.samples import make_sample
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope
from tests.apps.conversations.talk import admit, user
from tests.apps.conversations.test_presumed_lost import again, by_header, by_key, complete, presumed_lost
from tests.apps.learning.ledger import add_samples
from tests.tenants import Somebody

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = """
    SELECT count(*) FROM pg_locks waits JOIN pg_locks has USING (pid)
    JOIN pg_database db ON db.oid = has.database AND db.datname = current_database()
    WHERE NOT waits.granted
"""


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def beside_deletion(
    somebody: Somebody, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> object:
    """Call while a deletion of everything holds what it deletes next; return what it returned or raised."""
    holds, goes_on = threading.Event(), threading.Event()
    delete = work._delete

    def later(*args: object) -> None:
        holds.set()
        assert goes_on.wait(60)
        delete(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "_delete", later)
    with tenant_scope(somebody.tenant.id):
        meant = Meant(Subject.EVERYTHING, None)
        erasure = request_erasure(tenant_id=somebody.tenant.id, meant=meant, actor="user:x")
    came: dict[str, object] = {}

    def keep(name: str, what: Callable[[], object]) -> None:
        try:
            with tenant_scope(somebody.tenant.id):
                came[name] = what()
        except Exception as error:
            came[name] = error
        connection.close()

    deletion = threading.Thread(target=keep, args=("deletion", partial(work.erase, erasure_id=erasure.pk)))
    beside = threading.Thread(target=keep, args=("call", call))
    deletion.start()
    assert holds.wait(60)
    beside.start()
    while beside.is_alive() and not somebody_waits():
        time.sleep(0.02)
    goes_on.set()
    deletion.join()
    beside.join()
    assert came["deletion"] == work.Step.DONE
    with tenant_scope(somebody.tenant.id):
        assert Erasure.objects.get().state == ErasureState.DONE
    return came["call"]


def test_a_turn_that_ends_late_while_it_is_deleted(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted, _ = presumed_lost(somebody)
    with tenant_scope(somebody.tenant.id):
        Session.objects.update(idle_at=timezone.now())  # taken to be over: its end opens it again

    came = beside_deletion(somebody, partial(complete, somebody, admitted), monkeypatch)

    assert isinstance(came, NotFound)
    assert somebody.turns() == []


@pytest.mark.parametrize("request_of", [by_key, by_header])
def test_a_repetition_of_a_turn_that_is_deleted(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch, request_of: Callable[[], object]
) -> None:
    admitted, _ = presumed_lost(somebody, idempotency_key="k1")

    came = beside_deletion(somebody, partial(again, somebody, request_of()), monkeypatch)  # type: ignore[arg-type]

    assert isinstance(came, Admitted)
    assert [one.id for one in somebody.turns()] == [came.turn_id]
    assert came.turn_id != admitted.turn_id
    with tenant_scope(somebody.tenant.id):
        assert Session.objects.count() == 1


def test_a_turn_that_is_weighed_again_while_it_is_deleted(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample,) = add_samples(somebody, 1)

    came = beside_deletion(somebody, partial(make_sample, turn_id=sample.turn_id), monkeypatch)

    assert came is None
    assert somebody.turns() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda one: move_pointer(policy_id=one.policy.id, to_version_id=None, actor="user:x", reason="again"),
        lambda one: change_tenant(tenant_id=one.tenant.id, actor="user:x", name="Another"),
        lambda one: invite(
            tenant=one.tenant, inviter=one.user, email="new@example.org", role=Role.MEMBER, link="{token}"
        ),
    ],
    ids=["pointer", "tenant", "invitation"],
)
def test_a_request_does_not_wait_for_a_change_of_what_it_refers_to(
    somebody: Somebody, change: Callable[[Somebody], object]
) -> None:
    came: list[object] = []
    set_role(tenant_id=somebody.tenant.id, user=somebody.user, role=Role.ADMIN, actor="system:test")

    def request() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '5s'")
        try:
            came.append(admit(somebody, user("hi")))
        except Exception as error:
            came.append(error)
        connection.close()

    beside = threading.Thread(target=request)
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        change(somebody)
        beside.start()
        beside.join()
    assert [type(one) for one in came] == [Admitted]
    with tenant_scope(somebody.tenant.id):
        assert Turn.objects.count() == 1
