"""A turn whose process was silent is only presumed lost:
whatever comes of it, nothing is lost and nothing is there twice."""

import datetime as dt
import threading
import uuid
from collections.abc import Callable
from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from apps.conversations.holders import LOST_AFTER_S, beating, ending_lost
from apps.conversations.models import Turn, TurnHolder
from apps.conversations.services import (
    Admitted,
    Generation,
    Repeated,
    TurnRequest,
    abort_turn,
    admit_turn,
    close_idle_sessions,
    complete_turn,
    fail_lost_turns,
    fail_turn,
    moved,
)
from apps.judging.reasons import Reason, reason_of
from apps.learning.accounts import books
from apps.learning.models import Sample
from apps.learning.samples import make_sample
from apps.learning.upkeep import ask_for_unsampled
from kernel.calls import run
from kernel.errors import Conflict
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.conversations.talk import (
    JUDGE,
    admit,
    asked,
    assistant,
    outbox,
    say,
    sessions,
    turn,
    user,
    written,
)
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db

STOPPED = "the gateway stopped"


def hold(somebody: Somebody, admitted: Admitted) -> uuid.UUID:
    """Have a process hold a turn, one that has just said that it is there."""
    holder = uuid.uuid4()
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=admitted.turn_id).update(holder_id=holder)
        run(beating(holder))
    return holder


def stop(holder: uuid.UUID, *, for_s: float = LOST_AFTER_S + 1) -> None:
    """Let a process be silent for so long, and have upkeep look."""
    with system_scope("tests"):
        assert TurnHolder.objects.filter(id=holder).update(seen_at=F("seen_at") - dt.timedelta(seconds=for_s))
        fail_lost_turns(older_than_s=360)


def presumed_lost(somebody: Somebody, **fields: str) -> tuple[Admitted, uuid.UUID]:
    admitted = admit(somebody, user("hi"), body="b1", **fields)
    holder = hold(somebody, admitted)
    stop(holder)
    assert [(one.state, one.error) for one in somebody.turns()] == [("failed", STOPPED)]
    return admitted, holder


def complete(somebody: Somebody, admitted: Admitted, text: str = "one") -> None:
    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=written(text))


def again(somebody: Somebody, request: TurnRequest) -> Admitted | Repeated:
    return admit_turn(
        caller=somebody.caller, policy_id=somebody.policy.id, version_id=None, request=request, engine_id=None
    )


def by_key(body: str = "b1") -> TurnRequest:
    return asked(user("hi"), body=body, idempotency_key="k1")


def by_header() -> TurnRequest:
    return asked(user("hi"), body="b1", is_retry=True)


def test_a_process_that_was_only_stopped_completes_its_turn(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody, idempotency_key="k1")

    complete(somebody, admitted)
    complete(somebody, admitted)

    done = turn(somebody, admitted)
    assert (done.state, done.error, done.presumed_lost_at) == ("complete", "", None)
    assert (done.reply, done.output_ids) == (assistant("one"), written("one").output_ids)
    # a repetition gets this reply, and what goes on after it continues its tokens
    for request in (by_key(), by_header()):
        found = again(somebody, request)
        assert isinstance(found, Repeated)
        assert (found.turn_id, found.state) == (admitted.turn_id, "complete")
    following = turn(somebody, admit(somebody, user("hi"), assistant("one"), user("more")))
    assert following.parent_id == admitted.turn_id
    assert outbox(JUDGE) == [str(admitted.turn_id)]


def test_it_may_also_end_it_in_another_way(somebody: Somebody) -> None:
    ids = {"tenant_id": somebody.tenant.id}
    left, broke = admit(somebody, user("a"), idempotency_key="k1"), admit(somebody, user("b"))
    for one in (left, broke):
        stop(hold(somebody, one))

    abort_turn(**ids, turn_id=left.turn_id, generation=written("part"))
    fail_turn(**ids, turn_id=broke.turn_id, error="engine_gone: away", generation=Generation())

    stored = [turn(somebody, one) for one in (left, broke)]
    assert [(one.state, one.error) for one in stored] == [("aborted", ""), ("failed", "engine_gone: away")]
    assert stored[0].reply == assistant("part")
    assert [(one.presumed_lost_at, one.idempotency_key) for one in stored] == [(None, None)] * 2
    with pytest.raises(Conflict):
        complete(somebody, broke)


@pytest.mark.parametrize("request_of", [by_key, by_header, lambda: by_key("another body")])
def test_whoever_takes_its_place_is_answered_alone(
    somebody: Somebody, request_of: Callable[[], TurnRequest]
) -> None:
    admitted, _ = presumed_lost(somebody, idempotency_key="k1")
    request = request_of()

    instead = again(somebody, request)
    assert isinstance(instead, Admitted)
    with pytest.raises(Conflict):
        complete(somebody, admitted)
    complete(somebody, instead, "two")
    abort_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=written("one"))

    lost, done = somebody.turns()
    assert (lost.id, lost.state, lost.error) == (admitted.turn_id, "failed", STOPPED)
    assert (lost.reply, lost.presumed_lost_at, lost.idempotency_key) == (None, None, None)
    assert (done.id, done.state, done.reply) == (instead.turn_id, "complete", assistant("two"))
    assert done.idempotency_key == request.idempotency_key
    repeated = again(somebody, request)
    assert isinstance(repeated, Repeated)
    assert repeated.turn_id == instead.turn_id


def test_while_its_process_is_seen_again_a_repetition_waits_for_it(somebody: Somebody) -> None:
    admitted, holder = presumed_lost(somebody, idempotency_key="k1")
    with tenant_scope(somebody.tenant.id):
        run(beating(holder))

    for request in (by_key(), by_header()):
        found = again(somebody, request)
        assert isinstance(found, Repeated)
        assert (found.turn_id, found.state) == (admitted.turn_id, "pending")
    with tenant_scope(somebody.tenant.id):
        assert run(ending_lost(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id)) is False
    stop(holder)
    assert isinstance(again(somebody, by_key()), Admitted)


def test_a_repetition_that_finds_the_process_silent_presumes_the_same(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"), body="b1", idempotency_key="k1")
    holder = hold(somebody, admitted)
    with system_scope("tests"):
        TurnHolder.objects.filter(id=holder).update(
            seen_at=timezone.now() - dt.timedelta(seconds=LOST_AFTER_S)
        )
    with tenant_scope(somebody.tenant.id):
        assert run(ending_lost(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id)) is True
        assert run(ending_lost(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id)) is False

    complete(somebody, admitted)

    assert [one.state for one in somebody.turns()] == ["complete"]


def test_after_as_long_as_any_turn_may_take_it_is_lost_for_good(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody, idempotency_key="k1")
    before = turn(somebody, admitted)
    with system_scope("tests"):
        Turn.objects.filter(id=admitted.turn_id).update(created_at=timezone.now() - dt.timedelta(seconds=361))
        assert fail_lost_turns(older_than_s=360) == 0

    with pytest.raises(Conflict):
        complete(somebody, admitted)

    after = turn(somebody, admitted)
    assert (after.state, after.error, after.completed_at) == ("failed", STOPPED, before.completed_at)
    assert (after.presumed_lost_at, after.idempotency_key) == (None, None)


def test_only_what_failed_is_presumed_lost(somebody: Somebody) -> None:
    ended, running = say(somebody, user("a")), admit(somebody, user("b"))
    for turn_id in (ended.id, running.turn_id):
        with tenant_scope(somebody.tenant.id), transaction.atomic(), pytest.raises(IntegrityError):
            Turn.objects.filter(id=turn_id).update(presumed_lost_at=timezone.now())


def test_a_session_that_was_over_meanwhile_is_looked_at_again(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody)
    with tenant_scope(somebody.tenant.id):
        (session,) = sessions(somebody)
        type(session).objects.update(last_turn_at=timezone.now() - dt.timedelta(seconds=901))
    with system_scope("tests"):
        assert close_idle_sessions(idle_s=900) == 1
    assert outbox(JUDGE) == []

    complete(somebody, admitted)

    assert sessions(somebody)[0].idle_at is None
    with system_scope("tests"):
        assert close_idle_sessions(idle_s=900) == 1
        assert close_idle_sessions(idle_s=900) == 0
    assert outbox(JUDGE) == [str(admitted.turn_id)]


def test_nothing_is_made_of_it_before_it_is_known_how_it_ended(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody)
    with tenant_scope(somebody.tenant.id):
        assert make_sample(turn_id=admitted.turn_id) is None
        assert ask_for_unsampled(older_than_s=-1, limit=10) == 0
        assert (books().finished, books(late_after=dt.timedelta(0)).problems) == (0, [])

    instead = again(somebody, by_header())

    assert isinstance(instead, Admitted)
    with tenant_scope(somebody.tenant.id):
        assert ask_for_unsampled(older_than_s=-1, limit=10) == 1
        made = make_sample(turn_id=admitted.turn_id)
        assert made is not None
        assert (made.state, reason_of(made.reason)) == ("ineligible", Reason.FAILED)
        assert Sample.objects.count() == books().finished == 1


def test_another_engine_is_noted_for_it_too(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody)
    engine = uuid.uuid4()

    moved(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, engine_id=engine)

    assert turn(somebody, admitted).engine_id == engine


def test_another_tenant_neither_ends_it_nor_takes_its_place(somebody: Somebody) -> None:
    admitted, _ = presumed_lost(somebody, idempotency_key="k1")
    other = add_somebody("other")

    abort_turn(tenant_id=other.tenant.id, turn_id=admitted.turn_id, generation=written("theirs"))
    assert isinstance(again(other, by_key()), Admitted)

    stored = turn(somebody, admitted)
    assert (stored.state, stored.reply, stored.idempotency_key) == ("failed", None, "k1")
    assert stored.presumed_lost_at is not None


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Call all at the same moment, each over a connection of its own; return what they returned or raised."""
    start, made = threading.Barrier(len(calls)), []

    def one(call: Callable[[], object]) -> None:
        start.wait()
        try:
            made.append(call())
        except Conflict as error:
            made.append(error)
        connection.close()

    threads = [threading.Thread(target=one, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("request_of", [by_key, by_header])
def test_its_ending_and_two_repetitions_at_once_make_one_reply(request_of: Callable[[], TurnRequest]) -> None:
    """Whichever comes first: the others see it. Never two replies, never none."""
    for number in range(10):
        somebody = add_somebody(f"tenant-{number}")
        admitted, _ = presumed_lost(somebody, idempotency_key="k1")

        made = at_once(
            partial(complete, somebody, admitted),
            partial(again, somebody, request_of()),
            partial(again, somebody, request_of()),
        )

        instead = [one for one in made if isinstance(one, Admitted)]
        repeated = [one for one in made if isinstance(one, Repeated)]
        states = [one.state for one in somebody.turns()]
        if instead:
            assert states == ["failed", "pending"]
            assert [(one.turn_id, one.state) for one in repeated] == [(instead[0].turn_id, "pending")]
            assert [type(one) for one in made if one not in (*instead, *repeated)] == [Conflict]
        else:
            assert states == ["complete"]
            # one that looks while it is found again waits for it
            assert [one.turn_id for one in repeated] == [admitted.turn_id] * 2
            assert {one.state for one in repeated} <= {"pending", "complete"}
            assert None in made
