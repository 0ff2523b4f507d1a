"""What a deletion leaves alone: other people, what came after the wish,
and whoever is beside it at that moment."""

import datetime as dt
import json
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import EndUser, Membership, Role
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.governance.erasure import work
from apps.governance.erasure.work import Step
from apps.governance.models import Erasure, ErasureState, LearnedFrom, Subject
from apps.judging.models import Hint, OptOut
from apps.learning import runs
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.learning.opting_out import opt_out
from apps.memory.models import Evidence, Lesson, LessonState, Preference
from apps.memory.people import Person
from apps.memory.services import by_hand, remember
from kernel.errors import NotFound
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import member
from tests.apps.governance.erasing import asked, done, left, more
from tests.apps.memory.told import told_now
from tests.locks import wait_for_a_lock

SOON = dt.timedelta(hours=1)


def typed(rows: Rows, text: str, end_user: str | None = None) -> Preference:
    """Let a wish of the key's user, or of an end user, be typed."""
    with tenant_scope(rows.tenant.pk):
        return by_hand.add_preference(
            policy_id=rows.policy.pk, user_id=rows.user.pk, end_user=end_user, text=text, actor="user:x"
        )


def lesson(rows: Rows, key: str, **values: Any) -> Lesson:
    with tenant_scope(rows.tenant.pk):
        return Lesson.objects.create(
            policy=rows.policy, user=rows.user, key=key * 64, state=LessonState.ENDED, **values
        )


def there(rows: Rows) -> set[uuid.UUID]:
    with tenant_scope(rows.tenant.pk):
        return set(Session.objects.values_list("pk", flat=True))


def unsent(rows: Rows) -> list[OutboxMessage]:
    with system_scope("look"):
        return list(
            OutboxMessage.objects.filter(task="workers.governance.erase", tenant=rows.tenant, sent_at=None)
        )


def test_a_session_takes_no_other_session_of_its_person(acme: Rows) -> None:
    """But what repeats their questions: of this policy, of this person, and of this key."""
    person, colleague = acme.session.end_user, member(acme.tenant, Role.MEMBER)
    with tenant_scope(acme.tenant.pk):
        other = Policy.objects.create(name="other", base_model="tiny")
    mine = more(acme, 1, end_user=person)
    repeats = more(acme, 1, end_user=person, kind=TurnKind.SHADOW)
    elsewhere, theirs = (more(acme, 1, end_user=person, kind=TurnKind.SHADOW) for _ in range(2))
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=elsewhere.pk).update(policy=other)
        Session.objects.filter(pk=theirs.pk).update(user=colleague)
    after = done(asked(acme, Subject.SESSION, acme.session.pk))
    assert (after.turns_total, after.deleted["session"]) == (3, 2)
    assert there(acme) == {mine.pk, elsewhere.pk, theirs.pk}
    assert repeats.pk not in there(acme)


def test_a_session_goes_last_of_what_is_found_by_it(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        more(acme, 1, end_user=acme.session.end_user, kind=TurnKind.SHADOW)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    after = done(asked(acme, Subject.SESSION, acme.session.pk))
    assert (after.state, after.deleted["session"]) == (ErasureState.DONE, 4)
    assert there(acme) == set()


def test_a_person_takes_nobody_elses_wishes_and_names(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        EndUser.objects.create(external_id="idle")
    theirs, own = typed(acme, "Answer in French.", "another"), typed(acme, "Answer in German.")
    taught, learned = lesson(acme, "1", end_user_id=theirs.end_user_id), lesson(acme, "2")
    after = done(asked(acme, Subject.END_USER, acme.session.end_user_id))
    assert (after.deleted["enduser"], after.deleted["turn"]) == (1, 2)
    with tenant_scope(acme.tenant.pk):
        assert set(Preference.objects.values_list("pk", flat=True)) == {theirs.pk, own.pk}
        assert set(Lesson.objects.values_list("pk", flat=True)) == {taught.pk, learned.pk}
        assert set(EndUser.objects.values_list("external_id", flat=True)) == {"idle", "another"}


def test_a_member_takes_their_own_wishes_and_lessons_and_no_end_users(acme: Rows) -> None:
    typed(acme, "Answer in German.")
    lesson(acme, "2")
    with tenant_scope(acme.tenant.pk):
        EndUser.objects.create(external_id="idle")
        kept = Preference.objects.get(end_user=acme.session.end_user)
        taught = Lesson.objects.get(end_user=acme.session.end_user)
    after = done(asked(acme, Subject.MEMBER, acme.user.pk))
    assert after.deleted == {"lesson": 1}
    with tenant_scope(acme.tenant.pk):
        assert [one.pk for one in Preference.objects.all()] == [kept.pk]
        assert [one.pk for one in Lesson.objects.all()] == [taught.pk]
        assert EndUser.objects.count() == 2


def test_who_left_the_tenant_can_be_deleted_by_what_they_said(acme: Rows) -> None:
    gone, silent = member(acme.tenant, Role.MEMBER), member(acme.tenant, Role.ADMIN)
    said = more(acme, 2)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=said.pk).update(user=gone)
        Membership.objects.filter(user__in=(gone, silent)).delete()
    assert done(asked(acme, Subject.MEMBER, gone.pk)).deleted["turn"] == 2
    with pytest.raises(NotFound):
        asked(acme, Subject.MEMBER, silent.pk)
    with pytest.raises(NotFound):
        asked(acme, Subject.MEMBER, gone.pk)


def test_who_is_being_deleted_is_found_again_when_nothing_tells_of_them_any_more(acme: Rows) -> None:
    gone, said = member(acme.tenant, Role.MEMBER), more(acme, 1)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=said.pk).update(user=gone)
        Membership.objects.filter(user=gone).delete()
    erasure = asked(acme, Subject.MEMBER, gone.pk)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=said.pk).delete()
    assert asked(acme, Subject.MEMBER, gone.pk) == erasure


def test_a_person_who_is_in_hand_is_waited_for_before_a_wish_of_theirs_is_touched(acme: Rows) -> None:
    """Also where a wish rests on nothing that was said."""
    wish = typed(acme, "Answer in French.", "another")
    states: list[str] = []

    def forget() -> None:
        try:
            states.append(asked(acme, Subject.END_USER, wish.end_user_id).state)
        finally:
            connection.close()

    deletion = threading.Thread(target=forget)
    with tenant_scope(acme.tenant.pk), transaction.atomic():
        Person(wish.policy_id, wish.user_id, wish.end_user_id).lock()
        deletion.start()
        wait_for_a_lock()
    deletion.join()
    assert states == [ErasureState.OPEN]


def test_everything_takes_what_members_typed_and_leaves_what_came_after(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "ROWS_AT_ONCE", 1)
    for words in ("Answer in German.", "Use bullet points.", "Call me Ann."):
        typed(acme, words)
    before = lesson(acme, "2")
    erasure = asked(acme, Subject.EVERYTHING)
    later, learned = typed(acme, "Answer in French.", "passing"), lesson(acme, "3")
    with tenant_scope(acme.tenant.pk):
        EndUser.objects.create(external_id="idle")
    after = done(erasure)
    assert (after.state, after.deleted["preference"], after.deleted["lesson"]) == (ErasureState.DONE, 4, 2)
    with tenant_scope(acme.tenant.pk):
        assert [one.pk for one in Preference.objects.all()] == [later.pk]
        assert [one.pk for one in Lesson.objects.all()] == [learned.pk] != [before.pk]
        names = EndUser.objects.order_by("external_id").values_list("external_id", flat=True)
        assert list(names) == ["idle", "passing"]
    assert done(asked(acme, Subject.EVERYTHING)).pk != erasure.pk
    with tenant_scope(acme.tenant.pk):
        assert (Preference.objects.count(), EndUser.objects.count()) == (0, 0)


def test_wishes_go_some_at_a_time(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in ("Answer in German.", "Use bullet points."):
        typed(acme, words)
    monkeypatch.setattr(work, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 1)
    assert done(asked(acme, Subject.EVERYTHING)).deleted["preference"] == 2
    with tenant_scope(acme.tenant.pk):
        assert Preference.objects.count() == 1


def test_two_workers_take_turns_and_lose_no_count(acme: Rows) -> None:
    erasure = asked(acme, Subject.SESSION, acme.session.pk)

    def go_on() -> None:
        try:
            done(erasure)
        finally:
            connection.close()

    second = threading.Thread(target=go_on)
    with tenant_scope(acme.tenant.pk), transaction.atomic():
        Erasure.objects.filter(pk=erasure.pk).update(deleted={"turn": 5})
        second.start()
        wait_for_a_lock()
    second.join()
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.get(pk=erasure.pk).deleted["turn"] == 7


def test_a_message_that_comes_late_says_nothing_of_what_is_done_again(acme: Rows) -> None:
    after = done(asked(acme, Subject.SESSION, acme.session.pk))
    again = done(after)
    assert (again.finished_at, again.moved_at) == (after.finished_at, after.moved_at)
    with system_scope("look"):
        assert AuditEntry.objects.filter(action="data.deleted").count() == 1


def test_samples_of_several_steps_are_summed_up(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 1)
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    assert done(erasure).deleted["turn"] == 2
    with tenant_scope(acme.tenant.pk):
        assert LearnedFrom.objects.get(erasure=erasure).samples == 2


def test_a_wish_calls_a_worker_and_one_that_waits_calls_again_a_little_later(acme: Rows) -> None:
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    (message,) = unsent(acme)
    assert message.kwargs == {"erasure_id": str(erasure.pk), "tenant_id": str(acme.tenant.pk)}
    with system_scope("sent"):
        OutboxMessage.objects.update(sent_at=timezone.now())
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, completed_at=None, reply=None)
        Erasure.objects.filter(pk=erasure.pk).update(moved_at=timezone.now() - SOON)
    began = timezone.now()
    waiting = done(erasure)
    assert waiting.moved_at >= began
    (message,) = unsent(acme)
    assert message.available_at >= began + dt.timedelta(seconds=work.WAIT_S)


def test_only_what_is_open_is_asked_for_again_and_so_many_at_once(acme: Rows) -> None:
    over = done(asked(acme, Subject.SESSION, acme.session.pk))
    sessions = [more(acme, 1) for _ in range(3)]
    for one in sessions:
        asked(acme, Subject.SESSION, one.pk)
    with system_scope("upkeep"):
        OutboxMessage.objects.update(sent_at=timezone.now())
        assert work.ask_again(older_than_s=-1.0, limit=2) == 2
        assert work.ask_again(older_than_s=-1.0) == 3
    assert str(over.pk) not in {one.kwargs["erasure_id"] for one in unsent(acme)}


def test_a_session_that_waits_keeps_no_other_from_going(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest has a reply under way."""
    more(acme, 1)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(turn=acme.turn).delete()
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, completed_at=None, reply=None)
    waiting = done(asked(acme, Subject.EVERYTHING))
    assert (waiting.state, waiting.deleted["session"]) == (ErasureState.OPEN, 1)
    assert there(acme) == {acme.session.pk}


def test_a_request_that_comes_while_a_session_is_looked_for_is_waited_for(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, came = work._locked, []

    def after_a_request(due: QuerySet[Session], some: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        if not came:
            came.extend(some)
            request = threading.Thread(target=_admit, args=(acme,))
            request.start()
            request.join()
        return real(due, some)

    monkeypatch.setattr(work, "_locked", after_a_request)
    waiting = done(asked(acme, Subject.SESSION, acme.session.pk))
    assert came == [acme.session.pk]
    assert (waiting.state, waiting.deleted) == (ErasureState.OPEN, {})
    assert left(acme)["Turn"] == 3


def _admit(rows: Rows) -> None:
    try:
        with tenant_scope(rows.tenant.pk):
            Turn.objects.create(
                session=rows.session,
                policy=rows.policy,
                state=TurnState.PENDING,
                messages=[{"role": "user", "content": "and?"}],
                request_hash="0" * 64,
                body_sha256="0" * 64,
            )
    finally:
        connection.close()


def test_a_session_that_somebody_holds_is_passed_over(acme: Rows) -> None:
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    steps: list[Step] = []

    def go_on() -> None:
        try:
            with tenant_scope(acme.tenant.pk):
                with connection.cursor() as cursor:
                    cursor.execute("SET lock_timeout = '2s'")
                steps.append(work.erase(erasure_id=erasure.pk))
        finally:
            connection.close()

    with tenant_scope(acme.tenant.pk), transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=acme.session.pk)
        going = threading.Thread(target=go_on)
        going.start()
        going.join()
    assert steps == [Step.WAITS]
    assert done(erasure).state == ErasureState.DONE


def test_a_step_that_ended_before_it_could_be_cancelled_is_told_of(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a step holds goes before the step is over: what its version learned is counted."""
    with tenant_scope(acme.tenant.pk):
        ended = TrainingRun.objects.filter(pk=acme.run.pk).values().get()
        TrainingRun.objects.filter(pk=acme.run.pk).update(
            state=RunState.RUNNING, lease_until=timezone.now() + SOON, finished_at=None
        )
        Sample.objects.filter(turn=acme.turn).update(
            state=SampleState.CLAIMED, run=acme.run, consumed_at=None
        )
    real = runs.cancel_run

    def ends_first(*, run_id: uuid.UUID, actor: str) -> TrainingRun:
        Sample.objects.filter(run=run_id).update(state=SampleState.CONSUMED, consumed_at=timezone.now())
        TrainingRun.objects.filter(pk=run_id).update(**ended)
        return real(run_id=run_id, actor=actor)

    monkeypatch.setattr(runs, "cancel_run", ends_first)
    erasure = done(asked(acme, Subject.SESSION, acme.session.pk))
    assert erasure.state == ErasureState.DONE
    with tenant_scope(acme.tenant.pk):
        assert TrainingRun.objects.get(pk=acme.run.pk).state == RunState.SUCCEEDED
        assert LearnedFrom.objects.get(erasure=erasure, version=acme.version).samples == 2


def test_no_prompt_is_told_of_what_is_judged_after_it_was_asked_for(acme: Rows) -> None:
    """A reply is being written, so that the session waits, and a turn of before is judged meanwhile."""
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(turn=acme.turn).delete()
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, completed_at=None, reply=None)
        first = Turn.objects.exclude(pk=acme.turn.pk).get()
        Hint.objects.update(text="Answer in French.")
        person = Person(acme.policy.pk, acme.user.pk, acme.session.end_user_id)
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    with tenant_scope(acme.tenant.pk):
        assert len(remember(turn_id=first.pk)) == 1
        assert "French" in json.dumps(told_now(acme.tenant.pk, person))
        assert work.erase(erasure_id=erasure.pk) == Step.WAITS
        assert "French" not in json.dumps(told_now(acme.tenant.pk, person))
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.FAILED)
        assert work.erase(erasure_id=erasure.pk) == Step.DONE
        assert Evidence.objects.count() == 0


def test_a_person_whose_last_words_are_judged_after_it_was_asked_for_goes_too(acme: Rows) -> None:
    """What rests on a turn that goes keeps nobody's name."""
    with tenant_scope(acme.tenant.pk):
        Hint.objects.update(text="Answer in French.")
        first = Turn.objects.exclude(pk=acme.turn.pk).get()
    erasure = asked(acme, Subject.END_USER, acme.session.end_user_id)
    with tenant_scope(acme.tenant.pk):
        assert len(remember(turn_id=first.pk)) == 1
    after = done(erasure)
    assert (after.state, after.deleted["enduser"]) == (ErasureState.DONE, 1)
    with tenant_scope(acme.tenant.pk):
        assert (EndUser.objects.count(), Preference.objects.count(), Evidence.objects.count()) == (0, 0, 0)


def _wishes(rows: Rows, person: EndUser) -> None:
    by_hand.add_preference(
        policy_id=rows.policy.pk,
        user_id=rows.user.pk,
        end_user=person.external_id,
        text="Answer in French.",
        actor="user:x",
    )


def _opts_out(rows: Rows, person: EndUser) -> None:
    opt_out(tenant_id=rows.tenant.pk, actor="user:x", end_user_id=person.pk)


def _writes(rows: Rows, person: EndUser) -> None:
    EndUser.objects.select_for_update(no_key=True).get(pk=person.pk)  # as a request does that names one
    Session.objects.create(user=rows.user, policy=rows.policy, end_user=person)


@pytest.mark.parametrize("act", [_wishes, _opts_out, _writes])
def test_a_person_for_whom_something_is_said_at_that_moment_stays(
    acme: Rows, act: Callable[[Rows, EndUser], None]
) -> None:
    """A deletion finds nothing but the name, and waits for whoever has it in hand."""
    with tenant_scope(acme.tenant.pk):
        person = EndUser.objects.create(external_id="passing")
    gone: list[Any] = []

    def forget() -> None:
        try:
            with tenant_scope(acme.tenant.pk), transaction.atomic():
                gone.append(work._forget_unheard(EndUser.objects.filter(pk=person.pk)))
        finally:
            connection.close()

    deletion = threading.Thread(target=forget)
    with tenant_scope(acme.tenant.pk), transaction.atomic():
        act(acme, person)
        deletion.start()
        wait_for_a_lock()
    deletion.join()
    assert gone == [{}]
    with tenant_scope(acme.tenant.pk):
        assert EndUser.objects.filter(pk=person.pk).exists()


def test_who_is_deleted_at_that_moment_cannot_opt_out_any_more(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        person = EndUser.objects.create(external_id="passing")
    came: list[str | None] = []

    def refuse() -> None:
        try:
            with tenant_scope(acme.tenant.pk):
                _opts_out(acme, person)
        except NotFound as error:
            came.append(error.field)
        finally:
            connection.close()

    refusal = threading.Thread(target=refuse)
    with tenant_scope(acme.tenant.pk), transaction.atomic():
        assert work._forget_unheard(EndUser.objects.filter(pk=person.pk)) == {"accounts.EndUser": 1}
        refusal.start()
        wait_for_a_lock()
    refusal.join()
    assert came == ["end_user_id"]
    with tenant_scope(acme.tenant.pk):
        assert not OptOut.objects.filter(end_user_id=person.pk).exists()
