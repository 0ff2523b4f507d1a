"""What a deletion takes, what it leaves, and what it says of both, however often it dies on the way."""

import datetime as dt
import json
import threading
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import EndUser, Membership
from apps.adapters.models import AdapterVersion
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.governance.erasure import work
from apps.governance.erasure.lineage import known_of
from apps.governance.erasure.work import Step
from apps.governance.export import files, jobs
from apps.governance.models import Erasure, ErasureState, Export, ExportState, LearnedFrom, Subject
from apps.judging.models import Judgement, JudgementState, JudgeSpend, OptOut
from apps.keys.models import ApiKey
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.memory.models import Evidence, Lesson, Preference
from apps.memory.people import Person
from apps.memory.services import by_hand, forget_groundless
from kernel.errors import InvalidInput, NotFound
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.governance.erasing import SAID, agrees, asked, done, left, more
from tests.apps.memory.told import told_now
from tests.locks import wait_for_a_lock
from workers import upkeep
from workers.governance import erase


def test_a_session_goes_with_all_that_was_made_of_it(acme: Rows) -> None:
    other, kept = fill("globex"), more(acme, 3)
    whole = left(other)
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    assert (erasure.turns_total, erasure.state) == (2, ErasureState.OPEN)
    after = done(erasure)
    assert after.state == ErasureState.DONE
    assert after.finished_at is not None
    assert after.deleted == {
        "feedback": 1,
        "hint": 2,
        "judgement": 2,
        "sample": 2,
        "session": 1,
        "trajectory": 1,
        "turn": 2,
        "vote": 2,
    }
    assert left(acme) == dict.fromkeys((model.__name__ for model in SAID), 0) | {
        "Session": 1,
        "Turn": 3,
        "Sample": 3,
    }
    with tenant_scope(acme.tenant.pk):
        assert Session.objects.get().pk == kept.pk
        assert [(one.version_id, one.samples) for one in after.learned.all()] == [(acme.version.pk, 2)]
        said = list(AuditEntry.objects.filter(action__startswith="data.").order_by("created_at"))
        assert [one.action for one in said] == ["data.delete", "data.deleted"]
        assert said[1].detail["versions_that_had_learned"] == {acme.version.served_name: 2}
        assert "question" not in json.dumps([one.detail for one in said])
    assert left(other) == whole
    assert agrees(acme)


def test_no_prompt_is_told_of_it_from_the_moment_it_is_asked_for(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Evidence.objects.update(words="be brief")
        person = Person(acme.policy.pk, acme.user.pk, EndUser.objects.get().pk)
        assert "be brief" in json.dumps(told_now(acme.tenant.pk, person))
    asked(acme, Subject.SESSION, acme.session.pk)
    with tenant_scope(acme.tenant.pk):
        assert "be brief" not in json.dumps(told_now(acme.tenant.pk, person))
        assert Turn.objects.count() == 2


def test_an_end_user_goes_with_their_wishes(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        person = EndUser.objects.get()
        somebody = EndUser.objects.create(external_id="somebody else")
    more(acme, 1, end_user=somebody)
    erasure = asked(acme, Subject.END_USER, person.pk)
    with tenant_scope(acme.tenant.pk):
        assert Preference.objects.count() == 0
    after = done(erasure)
    assert (after.state, after.deleted["turn"], after.deleted["enduser"]) == (ErasureState.DONE, 2, 1)
    with tenant_scope(acme.tenant.pk):
        assert [one.external_id for one in EndUser.objects.all()] == ["somebody else"]
        assert (Turn.objects.count(), Lesson.objects.count()) == (1, 0)
    assert agrees(acme)


def test_who_opted_out_stays_out(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        person = EndUser.objects.get()
        OptOut.objects.create(end_user=person, actor="user:x")
    done(asked(acme, Subject.END_USER, person.pk))
    with tenant_scope(acme.tenant.pk):
        assert EndUser.objects.get() == person
        assert OptOut.objects.filter(ended_at=None, end_user=person).count() == 1
        assert Turn.objects.count() == 0


def test_a_member_goes_without_the_end_users_of_their_key(acme: Rows) -> None:
    own = more(acme, 2)
    after = done(asked(acme, Subject.MEMBER, acme.user.pk))
    assert (after.deleted["turn"], after.deleted["session"]) == (2, 1)
    with tenant_scope(acme.tenant.pk):
        assert [one.pk for one in Session.objects.all()] == [acme.session.pk] != [own.pk]
        assert Membership.objects.filter(user=acme.user).count() == 1


def test_everything_that_was_said_goes_and_the_house_stays(acme: Rows) -> None:
    other = fill("globex")
    whole = left(other)
    for number in range(3):
        more(acme, number)
    after = done(asked(acme, Subject.EVERYTHING))
    assert (after.state, after.turns_total, after.deleted["turn"]) == (ErasureState.DONE, 5, 5)
    assert left(acme) == dict.fromkeys((model.__name__ for model in SAID), 0)
    with tenant_scope(acme.tenant.pk):
        assert (Preference.objects.count(), Lesson.objects.count(), EndUser.objects.count()) == (0, 0, 0)
        assert (AdapterVersion.objects.count(), TrainingRun.objects.count()) == (2, 1)
        assert (ApiKey.objects.count(), Membership.objects.count()) == (1, 1)
    assert left(other) == whole
    assert agrees(acme)


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_it_dies_anywhere_and_goes_on(acme: Rows, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Every step ends by writing down what it took: dying there undoes it, dying after it repeats nothing."""
    more(acme, 5)
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 2)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    erasure, real, calls = asked(acme, Subject.EVERYTHING), work._note, []

    def dies(*arguments: Any, **more: Any) -> None:
        calls.append(1)
        if len(calls) == at:
            raise SystemExit
        real(*arguments, **more)
        if len(calls) == at + 1:
            raise SystemExit

    monkeypatch.setattr(work, "_note", dies)
    for _ in range(2):
        with pytest.raises(SystemExit):
            done(erasure)
        assert agrees(acme)
    after = done(erasure)
    assert after.state == ErasureState.DONE
    assert {name: after.deleted[name] for name in ("turn", "session", "sample", "vote")} == {
        "turn": 7,
        "session": 2,
        "sample": 7,
        "vote": 2,
    }
    with tenant_scope(acme.tenant.pk):
        assert LearnedFrom.objects.get(erasure=erasure).samples == 2
        assert AuditEntry.objects.filter(action="data.deleted").count() == 1
    assert done(erasure).deleted == after.deleted


def test_two_at_once_count_each_row_once(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(6):
        more(acme, 3)
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 2)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    erasure = asked(acme, Subject.EVERYTHING)

    def go() -> None:
        erase(tenant_id=str(erasure.tenant_id), erasure_id=str(erasure.pk))
        connection.close()

    both = [threading.Thread(target=go) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    after = done(erasure)
    assert (after.state, after.deleted["turn"], after.deleted["session"]) == (ErasureState.DONE, 20, 7)
    assert left(acme)["Turn"] == 0


def test_the_second_of_two_looks_again_where_the_first_is_done_by_then(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(acme.tenant.pk):
        before = Erasure.objects.create(
            tenant=acme.tenant,
            actor="user:y",
            subject=Subject.SESSION,
            subject_id=acme.session.pk,
            turns_total=1,
            moved_at=timezone.now(),
        )
        real, looks = QuerySet.first, []

        def first(rows: Any) -> Any:
            """Miss it once, as if it were written after the look,
            and let it be done after the insert failed."""
            if rows.model is not Erasure:
                return real(rows)
            looks.append(None)
            if len(looks) == 2:
                Erasure.objects.filter(pk=before.pk).update(
                    state=ErasureState.DONE, finished_at=timezone.now()
                )
            return None if len(looks) == 1 else real(rows)

        monkeypatch.setattr(QuerySet, "first", first)
        made = asked(acme, Subject.SESSION, acme.session.pk)
    assert made.pk != before.pk
    assert made.state == ErasureState.OPEN


@pytest.mark.parametrize("subject", [Subject.END_USER, Subject.SESSION])
def test_a_wish_that_is_forgotten_by_hand_and_with_its_person_or_session_goes_once(
    acme: Rows, monkeypatch: pytest.MonkeyPatch, subject: Subject
) -> None:
    """By hand it is taken first and then what it rests on;
    the deletion waits for the person, with neither in hand."""
    with tenant_scope(acme.tenant.pk):
        row = Evidence.objects.select_related("preference").first()
        assert row is not None
        wish = row.preference
    assert wish.end_user_id is not None
    real, ends = by_hand.bury, []

    def forget_both() -> None:
        try:
            key = wish.end_user_id if subject == Subject.END_USER else acme.session.pk
            ends.append(asked(acme, subject, key).state)
        finally:
            connection.close()

    asking = threading.Thread(target=forget_both)

    def bury(row: Preference, reason: str) -> None:
        asking.start()
        wait_for_a_lock()
        real(row, reason)

    monkeypatch.setattr(by_hand, "bury", bury)
    with tenant_scope(acme.tenant.pk):
        by_hand.delete_preference(preference_id=wish.pk, user_id=None, actor="user:x")
    asking.join()
    assert ends == [ErasureState.OPEN]
    with tenant_scope(acme.tenant.pk):
        assert not Evidence.objects.filter(preference=wish).exists()
        forget_groundless()
        assert not Preference.objects.filter(pk=wish.pk).exists()


def test_a_deletion_waits_for_no_session_while_it_holds_others(acme: Rows) -> None:
    """Another one may hold what repeats its questions, and want its sessions."""
    with tenant_scope(acme.tenant.pk):
        shadow = more(acme, 0, kind=TurnKind.SHADOW)
        Turn.objects.create(
            session=shadow,
            policy=acme.policy,
            kind=TurnKind.SHADOW,
            repeats=acme.turn,
            state=TurnState.FAILED,
            messages=[{"role": "user", "content": "secret"}],
            request_hash="0" * 64,
            body_sha256="0" * 64,
        )
    wish = asked(acme, Subject.MEMBER, acme.user.pk) if acme.session.end_user_id is None else None
    wish = wish or asked(acme, Subject.END_USER, acme.session.end_user_id)
    steps: list[Step] = []

    def go_on() -> None:
        try:
            with tenant_scope(acme.tenant.pk):
                with connection.cursor() as cursor:
                    cursor.execute("SET lock_timeout = '2s'")
                steps.append(work.erase(erasure_id=wish.pk))
        finally:
            connection.close()

    with tenant_scope(acme.tenant.pk), transaction.atomic():
        Session.objects.select_for_update().get(pk=shadow.pk)
        going = threading.Thread(target=go_on)
        going.start()
        going.join()
    assert steps == [Step.WAITS]
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.get(pk=wish.pk).reason == "waits for another deletion"
    assert done(wish).state == ErasureState.DONE


def test_a_large_one_goes_on_by_another_message(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    more(acme, 4)
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 2)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 2)
    erasure = asked(acme, Subject.EVERYTHING)
    with system_scope("sent"):
        OutboxMessage.objects.update(sent_at=timezone.now())
    assert done(erasure).state == ErasureState.OPEN
    with system_scope("look"):
        (message,) = OutboxMessage.objects.filter(sent_at=None)
        assert message.kwargs == {"erasure_id": str(erasure.pk), "tenant_id": str(acme.tenant.pk)}
    for _ in range(5):
        done(erasure)
    assert done(erasure).state == ErasureState.DONE


def test_a_reply_that_is_being_written_is_waited_for(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, completed_at=None, reply=None)
        Sample.objects.filter(turn=acme.turn).delete()
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    waiting = done(erasure)
    assert (waiting.state, waiting.reason) == (ErasureState.OPEN, "waits for a reply that is being written")
    assert left(acme)["Turn"] == 2
    with system_scope("upkeep"):
        OutboxMessage.objects.update(sent_at=timezone.now())
        assert work.ask_again(older_than_s=3600.0) == 0
        assert work.ask_again(older_than_s=-1.0) == 1
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.FAILED)
    after = done(erasure)
    assert (after.state, after.reason, after.deleted["turn"]) == (ErasureState.DONE, "", 2)


def test_a_step_that_learns_from_it_is_ended(acme: Rows) -> None:
    kept = more(acme, 1)
    with tenant_scope(acme.tenant.pk):
        run = TrainingRun.objects.create(
            policy=acme.policy,
            state=RunState.RUNNING,
            trigger="threshold",
            lease_until=timezone.now() + dt.timedelta(seconds=60),
        )
        Sample.objects.filter(turn=acme.turn).update(state=SampleState.CLAIMED, run=run, consumed_at=None)
        Sample.objects.filter(turn__session=kept).update(state=SampleState.CLAIMED, run=run, reason="")
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    assert done(erasure).state == ErasureState.DONE
    with tenant_scope(acme.tenant.pk):
        run.refresh_from_db()
        assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by system:erasure")
        assert Sample.objects.get().state == SampleState.READY
        assert LearnedFrom.objects.get(erasure=erasure).samples == 1
    assert agrees(acme)


def test_a_judge_who_is_thinking_finds_it_gone(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        JudgeSpend.objects.update(reserved=700)
        Judgement.objects.filter(turn=acme.turn).update(
            state=JudgementState.PENDING, reserved=500, reserved_on=timezone.now().date()
        )
    done(asked(acme, Subject.SESSION, acme.session.pk))
    with tenant_scope(acme.tenant.pk):
        assert JudgeSpend.objects.get().reserved == 200


def test_what_repeats_a_session_goes_with_it(acme: Rows) -> None:
    """Shadow rollouts answer a person's own questions once more."""
    mine = {"end_user": acme.session.end_user, "kind": TurnKind.SHADOW}
    shadow, theirs = more(acme, 2, **mine), more(acme, 1, kind=TurnKind.SHADOW)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=shadow.pk).update(created_at=timezone.now() + dt.timedelta(hours=1))
    after = done(asked(acme, Subject.SESSION, acme.session.pk))
    assert (after.state, after.turns_total, after.deleted["turn"]) == (ErasureState.DONE, 4, 4)
    with tenant_scope(acme.tenant.pk):
        assert Session.objects.get().pk == theirs.pk


def test_what_is_said_after_the_wish_stays(acme: Rows) -> None:
    erasure = asked(acme, Subject.EVERYTHING)
    later = more(acme, 2)
    assert done(erasure).state == ErasureState.DONE
    with tenant_scope(acme.tenant.pk):
        assert Session.objects.get().pk == later.pk
        assert Turn.objects.count() == 2


def test_archives_that_hold_it_end(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        export = jobs.request_export(tenant_id=acme.tenant.pk, actor="user:x")
        written = jobs.write(export_id=export.pk)
        assert written is not None
        under_way = jobs.request_export(tenant_id=acme.tenant.pk, actor="user:x")
    place = files.place_of(written)
    assert place.exists()
    assert done(asked(acme, Subject.SESSION, acme.session.pk)).deleted["export"] == 2
    with system_scope("look"):
        ended = Export.objects.filter(pk__in=(export.pk, under_way.pk))
        assert {(one.state, one.reason) for one in ended} == {
            (ExportState.EXPIRED, "it held what was deleted since")
        }
    assert not place.exists()


def test_only_what_is_there_is_deleted(acme: Rows) -> None:
    other = fill("globex")
    for subject, key in (
        (Subject.SESSION, other.session.pk),
        (Subject.END_USER, other.session.end_user_id),
        (Subject.MEMBER, other.user.pk),
        (Subject.SESSION, uuid.uuid4()),
    ):
        with pytest.raises(NotFound):
            asked(acme, subject, key)
    with pytest.raises(InvalidInput):
        asked(acme, Subject.SESSION)
    with pytest.raises(InvalidInput):
        asked(acme, Subject.EVERYTHING, acme.session.pk)
    erasure = asked(acme, Subject.SESSION, acme.session.pk)
    assert asked(acme, Subject.SESSION, acme.session.pk).pk == erasure.pk
    assert left(other)["Turn"] == 2
    upkeep.forget_groundless()


@pytest.mark.parametrize(
    "values",
    [
        {"state": "half"},
        {"subject": "session", "subject_id": None},
        {"subject": "everything", "subject_id": uuid.uuid4()},
        {"subject": "tenants", "subject_id": uuid.uuid4()},
        {"state": "done"},
    ],
)
def test_postgres_refuses_a_deletion_of_nothing(acme: Rows, values: dict[str, Any]) -> None:
    fields = {"subject": "everything", "turns_total": 0, "moved_at": timezone.now(), "actor": "x"}
    with tenant_scope(acme.tenant.pk):
        with pytest.raises(IntegrityError), transaction.atomic():
            Erasure.objects.create(**fields | values)
        Erasure.objects.create(**fields)
        with pytest.raises(IntegrityError), transaction.atomic():
            Erasure.objects.create(**fields)


def test_which_versions_know_of_it(acme: Rows) -> None:
    """1 learned nothing of it, 2 did, 3 builds on 2, 4 goes back to 1."""
    with tenant_scope(acme.tenant.pk):
        third = _version(acme, 3, acme.version)
        fourth = _version(acme, 4, acme.older)
        (known,) = known_of({acme.version.pk: 2})
        assert [(version.number, samples) for version, samples in known.learned] == [(2, 2)]
        assert list(known.built_on) == [third]
        assert known.clean == fourth
        assert known.live_knows
        AdapterVersion.objects.filter(pk__in=(fourth.pk, acme.older.pk)).update(state="refused")
        (known,) = known_of({acme.version.pk: 2})
        assert known.clean is None
        assert known_of({}) == []


def _version(rows: Rows, number: int, parent: AdapterVersion) -> AdapterVersion:
    return AdapterVersion.objects.create(
        policy=rows.policy,
        number=number,
        parent=parent,
        depth=parent.depth + 1,
        served_name=f"p-{number}",
        sha256="0" * 64,
        path=f"x/{number}",
        rank=16,
        alpha=32,
        state="ready",
        run_id=uuid.uuid4(),
    )


def test_a_step_says_what_became_of_it(acme: Rows) -> None:
    erasure = asked(acme, Subject.EVERYTHING)
    with tenant_scope(acme.tenant.pk):
        assert work.erase(erasure_id=erasure.pk) == Step.DONE
        assert work.erase(erasure_id=uuid.uuid4()) == Step.DONE
