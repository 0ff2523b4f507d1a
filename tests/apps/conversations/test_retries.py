"""A retry is the same turn; a second request is not."""

import datetime as dt
import threading

import pytest
from django.db import connection
from django.utils import timezone

from apps.conversations.errors import IdempotencyKeyReused
from apps.conversations.models import Session, Turn
from apps.conversations.services import (
    Admitted,
    Generation,
    Repeated,
    TurnRequest,
    abort_turn,
    admit_turn,
    complete_turn,
    fail_turn,
)
from kernel.tenancy import tenant_scope
from tests.apps.conversations.talk import JUDGE, admit, asked, assistant, outbox, say, turn, user, written
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db


def outcome(somebody: Somebody, request: TurnRequest) -> Admitted | Repeated:
    return admit_turn(
        caller=somebody.caller, policy_id=somebody.policy.id, version_id=None, request=request, engine_id=None
    )


def test_a_retry_of_a_complete_turn_is_that_turn(somebody: Somebody) -> None:
    root = say(somebody, user("hi"), reply="Hello")
    lost = say(somebody, user("hi"), assistant("Hello"), user("a"), reply="A", body="b1")

    again = outcome(somebody, asked(user("hi"), assistant("Hello"), user("a"), body="b1", is_retry=True))

    assert isinstance(again, Repeated)
    assert (again.turn_id, again.session, again.state) == (lost.id, str(lost.session_id), "complete")
    assert len(somebody.turns()) == 2
    assert turn(somebody, root).next_turn_id == lost.id
    assert outbox(JUDGE) == [str(root.id)]


def test_a_retry_of_a_running_turn_finds_it_pending(somebody: Somebody) -> None:
    first = admit(somebody, user("hi"), body="b1")

    again = outcome(somebody, asked(user("hi"), body="b1", is_retry=True))

    assert isinstance(again, Repeated)
    assert (again.turn_id, again.state) == (first.turn_id, "pending")


def test_the_same_body_without_a_retry_header_is_another_turn(somebody: Somebody) -> None:
    say(somebody, user("hi"), body="b1")

    assert isinstance(outcome(somebody, asked(user("hi"), body="b1")), Admitted)
    assert len(somebody.turns()) == 2


@pytest.mark.parametrize("ending", ["aborted", "failed"])
def test_a_retry_of_what_came_to_nothing_is_answered_anew_in_the_same_session(
    somebody: Somebody, ending: str
) -> None:
    first = admit(somebody, user("hi"), body="b1", idempotency_key="k1")
    if ending == "aborted":
        abort_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=Generation())
    else:
        fail_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, error="x", generation=Generation())

    by_body = outcome(somebody, asked(user("hi"), body="b1", is_retry=True))
    by_key = outcome(somebody, asked(user("hi"), body="b1", idempotency_key="k1"))

    assert isinstance(by_body, Admitted)
    assert by_body.session == first.session
    assert isinstance(by_key, Admitted)
    assert turn(somebody, by_key).idempotency_key == "k1"


def test_a_retry_of_a_failed_turn_supplies_no_second_next_state(somebody: Somebody) -> None:
    root = say(somebody, user("hi"), reply="Hello")
    lost = admit(somebody, user("hi"), assistant("Hello"), user("a"), body="b1")
    fail_turn(tenant_id=somebody.tenant.id, turn_id=lost.turn_id, error="x", generation=Generation())

    again = outcome(somebody, asked(user("hi"), assistant("Hello"), user("a"), body="b1", is_retry=True))

    assert isinstance(again, Admitted)
    assert turn(somebody, again).parent_id == root.id
    assert turn(somebody, root).next_turn_id == lost.turn_id
    assert outbox(JUDGE) == [str(root.id)]


def test_a_reply_that_was_taken_up_was_not_lost(somebody: Somebody) -> None:
    say(somebody, user("hi"), reply="Hello", body="b1")
    say(somebody, user("hi"), assistant("Hello"), user("a"), body="b2")

    assert isinstance(outcome(somebody, asked(user("hi"), body="b1", is_retry=True)), Admitted)


def test_an_old_turn_is_not_repeated_by_its_body(somebody: Somebody) -> None:
    old = say(somebody, user("hi"), body="b1")
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=old.id).update(created_at=timezone.now() - dt.timedelta(minutes=16))

    assert isinstance(outcome(somebody, asked(user("hi"), body="b1", is_retry=True)), Admitted)


def test_an_idempotency_key_stands_for_one_body(somebody: Somebody) -> None:
    first = say(somebody, user("hi"), body="b1", idempotency_key="k1")

    again = outcome(somebody, asked(user("hi"), body="b1", idempotency_key="k1"))
    assert isinstance(again, Repeated)
    assert again.turn_id == first.id
    with pytest.raises(IdempotencyKeyReused) as refusal:
        outcome(somebody, asked(user("other"), body="b2", idempotency_key="k1"))
    assert refusal.value.status == 422
    assert len(somebody.turns()) == 1


def test_another_key_neither_repeats_nor_blocks(somebody: Somebody) -> None:
    say(somebody, user("hi"), body="b1", idempotency_key="k1")
    for other in (add_somebody(tenant=somebody.tenant), add_somebody("other")):
        request = asked(user("hi"), body="b1", idempotency_key="k1", is_retry=True)
        assert isinstance(outcome(other, request), Admitted)


@pytest.mark.django_db(transaction=True)
def test_the_same_idempotency_key_at_once_makes_one_turn() -> None:
    somebody = add_somebody()
    start, made = threading.Barrier(4), []

    def send() -> None:
        start.wait()
        made.append(outcome(somebody, asked(user("hi"), body="b1", idempotency_key="k1", session="s-1")))
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(type(one).__name__ for one in made) == ["Admitted", "Repeated", "Repeated", "Repeated"]
    assert len(somebody.turns()) == 1
    with tenant_scope(somebody.tenant.id):
        assert Session.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_continuations_at_once_make_one_next_state() -> None:
    somebody = add_somebody()
    root = say(somebody, user("hi"), reply="Hello")
    start = threading.Barrier(4)

    def send(number: int) -> None:
        start.wait()
        admit(somebody, user("hi"), assistant("Hello"), user(f"n{number}"), body=f"b{number}")
        connection.close()

    threads = [threading.Thread(target=send, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    children = [one for one in somebody.turns() if one.parent_id == root.id]
    parent = turn(somebody, root)
    assert len(children) == 4
    assert parent.next_turn_id in {child.id for child in children}
    (supplier,) = [child for child in children if child.id == parent.next_turn_id]
    assert parent.next_state == supplier.messages[2:]
    assert outbox(JUDGE) == [str(root.id)]


def test_completing_again_changes_nothing_and_another_end_is_refused(somebody: Somebody) -> None:
    first = admit(somebody, user("hi"))
    complete_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("one"))
    done = turn(somebody, first)

    complete_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("one"))
    abort_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("two"))
    fail_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, error="x", generation=written("two"))

    after = turn(somebody, first)
    assert (after.state, after.reply, after.completed_at) == ("complete", done.reply, done.completed_at)
