"""Sessions that never say that they are over, and turns whose gateway died."""

import datetime as dt
import uuid

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from apps.conversations.holders import LOST_AFTER_S, NAMED_BY, beating, ending_lost
from apps.conversations.models import Session, Turn, TurnHolder, TurnKind
from apps.conversations.quiet import IN_SILENCE, room_beside_people
from apps.conversations.services import close_idle_sessions, fail_lost_turns
from kernel.calls import run
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.conversations.talk import JUDGE, admit, assistant, outbox, say, sessions, turn, user
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db


def rest(somebody: Somebody, seconds: float) -> None:
    """Make all of the tenant's sessions look as if nothing had happened for a while."""
    with tenant_scope(somebody.tenant.id):
        Session.objects.update(last_turn_at=timezone.now() - dt.timedelta(seconds=seconds))


def close() -> int:
    with system_scope("tests"):
        return close_idle_sessions(idle_s=900)


def test_the_last_turn_of_an_idle_session_is_judged_once(somebody: Somebody) -> None:
    say(somebody, user("hi"), reply="Hello")
    last = say(somebody, user("hi"), assistant("Hello"), user("bye"), reply="Bye")
    other = add_somebody("other")
    theirs = say(other, user("hi"))
    asked_before = outbox(JUDGE)
    rest(somebody, 901)
    rest(other, 901)

    assert close() == 2
    assert close() == 0
    assert sorted(outbox(JUDGE)) == sorted([*asked_before, str(last.id), str(theirs.id)])
    assert sessions(somebody)[0].idle_at is not None


def test_a_session_that_goes_on_is_open_again(somebody: Somebody) -> None:
    first = say(somebody, user("hi"), reply="Hello")
    rest(somebody, 901)
    close()

    say(somebody, user("hi"), assistant("Hello"), user("back"))

    assert sessions(somebody)[0].idle_at is None
    assert turn(somebody, first).next_state == [{"role": "user", "content": "back"}]


def test_a_fresh_or_busy_session_is_left_alone(somebody: Somebody) -> None:
    say(somebody, user("hi"))
    rest(somebody, 899)
    assert close() == 0
    admit(somebody, user("new"), session=str(sessions(somebody)[0].id))
    rest(somebody, 5000)
    assert close() == 0
    assert outbox(JUDGE) == []


def test_what_is_never_judged_is_not_when_idle(somebody: Somebody) -> None:
    say(somebody, user("side"), side=True)
    say(somebody, user("try"), kind=TurnKind.EVALUATION)
    rest(somebody, 901)

    assert close() == 2
    assert outbox(JUDGE) == []


def test_a_turn_that_nobody_holds_any_more_fails(somebody: Somebody) -> None:
    lost, running = admit(somebody, user("a"), idempotency_key="k1"), admit(somebody, user("b"))
    done = say(somebody, user("c"))
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id__in=[lost.turn_id, done.id]).update(
            created_at=timezone.now() - dt.timedelta(seconds=400)
        )

    with system_scope("tests"):
        assert fail_lost_turns(older_than_s=360) == 1

    stored = turn(somebody, lost)
    assert (stored.state, stored.error, stored.idempotency_key) == ("failed", "the gateway stopped", None)
    assert turn(somebody, running).state == "pending"
    assert turn(somebody, done).state == "complete"


def test_a_turn_whose_process_is_gone_fails_within_seconds(somebody: Somebody) -> None:
    names = ("gone", "never seen", "there", "young", "of nobody")
    turns = {name: admit(somebody, user(name)) for name in names}
    now = timezone.now()
    holders = {"gone": LOST_AFTER_S + 1, "there": LOST_AFTER_S - 3}
    with tenant_scope(somebody.tenant.id):
        for name in names[:4]:
            holder = uuid.uuid4()
            Turn.objects.filter(id=turns[name].turn_id).update(
                holder_id=holder, created_at=now - dt.timedelta(seconds=0 if name == "young" else 60)
            )
            if name in holders:
                TurnHolder.objects.create(id=holder, seen_at=now - dt.timedelta(seconds=holders[name]))
        TurnHolder.objects.create(id=uuid.uuid4(), seen_at=now - dt.timedelta(days=2))

    with system_scope("tests"):
        assert fail_lost_turns(older_than_s=360) == 1
        # long gone ones are forgotten; those without a row have one, as if they had just been seen
        assert TurnHolder.objects.count() == 4

    stored = {name: turn(somebody, turns[name]) for name in names}
    assert [name for name in names if stored[name].state == "failed"] == ["gone"]
    assert stored["gone"].error == "the gateway stopped"

    pass_by(LOST_AFTER_S, stored["never seen"].holder_id)
    with system_scope("tests"):
        assert fail_lost_turns(older_than_s=360) == 1
    assert turn(somebody, turns["never seen"]).state == "failed"


def pass_by(seconds: float, holder: uuid.UUID | None) -> None:
    """Let a holder be silent for so long."""
    with system_scope("tests"):
        seen = TurnHolder.objects.filter(id=holder)
        assert seen.update(seen_at=F("seen_at") - dt.timedelta(seconds=seconds)) == 1


def test_a_turn_whose_holder_has_no_row_is_lost_only_after_its_silence(somebody: Somebody) -> None:
    held, holder = admit(somebody, user("a")), uuid.uuid4()
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=held.turn_id).update(
            holder_id=holder, created_at=timezone.now() - dt.timedelta(minutes=2)
        )
        asked = {"tenant_id": somebody.tenant.id, "turn_id": held.turn_id}
        assert run(ending_lost(**asked)) is False
        pass_by(LOST_AFTER_S, holder)
        run(beating(holder))
        assert run(ending_lost(**asked)) is False
        pass_by(LOST_AFTER_S, holder)
        assert run(ending_lost(**asked)) is True
        assert run(ending_lost(**asked)) is False
    assert turn(somebody, held).state == "failed"


def test_a_holder_is_seen_by_its_beat(somebody: Somebody) -> None:
    holder = uuid.uuid4()
    with tenant_scope(somebody.tenant.id):
        run(beating(holder))
        first = TurnHolder.objects.get(id=holder).seen_at
        run(beating(holder))
        assert TurnHolder.objects.get(id=holder).seen_at > first


def test_what_a_connection_admits_is_held_by_whom_it_names(somebody: Somebody) -> None:
    holder = uuid.uuid4()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [NAMED_BY, str(holder)])
        held = admit(somebody, user("a"))
        cursor.execute("SELECT set_config(%s, '', true)", [NAMED_BY])
        free = admit(somebody, user("b"))

    assert [turn(somebody, one).holder_id for one in (held, free)] == [holder, None]


def test_whether_anybody_asks_goes_by_the_databases_clock(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert room_beside_people() == IN_SILENCE
    say(somebody, user("hi"), reply="Hello")
    ahead = timezone.now() + dt.timedelta(seconds=30)
    monkeypatch.setattr("apps.conversations.quiet.timezone.now", lambda: ahead)
    assert room_beside_people() == 0
