"""Sessions go by age: what a sweep takes, what it leaves, when it begins, and that two of them are one."""

import datetime as dt
import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.governance import retention
from apps.governance.erasure import work
from apps.governance.erasure.extent import Counted
from apps.governance.erasure.subjects import Meant
from apps.governance.export import jobs
from apps.governance.models import Erasure, ErasureState, Export, ExportState, LearnedFrom, Subject
from apps.judging.models import OptOut
from apps.learning.accounts import books
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.memory.models import Evidence, Preference
from apps.memory.people import Person
from apps.memory.services import edit_preference
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.governance.sweeping import DAY, aged, keep, older, swept, there, yesterday
from tests.apps.memory.told import told_now
from tests.services import owner_url
from workers import upkeep
from workers.governance import erase


def test_nothing_goes_by_itself(acme: Rows) -> None:
    older(acme, 4000)
    assert swept() == []
    keep(acme, 30)
    keep(acme, None)
    assert swept() == []
    assert there(acme) == {acme.session.pk}


def test_what_is_older_goes_with_all_that_was_made_of_it_and_the_rest_stays(acme: Rows) -> None:
    other = fill("globex")
    older(other, 400)
    older(acme, 31)
    young, old = aged(acme, 29.9), aged(acme, 30.1, turns=3)
    with tenant_scope(acme.tenant.pk):
        policy = Policy.objects.create(name="kept", base_model="tiny")
        elsewhere = aged(acme, 400)
        Session.objects.filter(pk=elsewhere.pk).update(policy=policy)
    keep(acme, 30)
    (sweep,) = swept()
    assert (sweep.state, sweep.actor, sweep.subject_id, sweep.older_than_days) == (
        ErasureState.DONE,
        "system:retention",
        acme.policy.pk,
        30,
    )
    assert sweep.turns_total == 5
    assert sweep.deleted == {
        "enduser": 1,
        "evidence": 1,
        "feedback": 1,
        "hint": 2,
        "judgement": 2,
        "lesson": 1,
        "optout": 1,
        "preference": 1,
        "sample": 5,
        "session": 2,
        "trajectory": 1,
        "turn": 5,
        "vote": 2,
    }
    assert there(acme) == {young.pk, elsewhere.pk}
    assert old.pk not in there(acme)
    assert there(other) == {other.session.pk}
    with tenant_scope(acme.tenant.pk):
        assert LearnedFrom.objects.get(erasure=sweep).samples == 2
        (said,) = AuditEntry.objects.filter(action__startswith="data.")
        assert (said.action, said.actor) == ("data.aged", "system:erasure")
        assert said.detail == {
            "policy": str(acme.policy.pk),
            "older_than_days": 30,
            "deleted": sweep.deleted,
            "versions_that_had_learned": {acme.version.served_name: 2},
        }
        assert "secret" not in json.dumps(said.detail)
        assert books().problems == []


def test_a_sweep_is_once_a_day_or_when_the_days_change(acme: Rows) -> None:
    aged(acme, 31)
    keep(acme, 30)
    assert len(swept()) == 1
    late = aged(acme, 30.5)
    assert len(swept()) == 1
    assert late.pk in there(acme)
    yesterday(acme)
    assert len(swept()) == 2
    assert late.pk not in there(acme)
    ten = aged(acme, 10)
    keep(acme, 9)
    assert len(swept()) == 3
    assert ten.pk not in there(acme)
    # nothing to take: no sweep, and no row of one
    yesterday(acme)
    assert len(swept()) == 3


def test_a_session_that_goes_on_is_young_again(acme: Rows) -> None:
    old = aged(acme, 40, turns=2)
    keep(acme, 30)
    upkeep.begin_sweeps()
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=old.pk).update(last_turn_at=timezone.now())
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted) == (ErasureState.DONE, {})
    assert old.pk in there(acme)


def test_one_that_goes_on_while_a_sweep_looks_is_left(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between finding a session and locking it a request came and was answered."""
    old = aged(acme, 40)
    keep(acme, 30)
    upkeep.begin_sweeps()
    real, went_on = work._locked, []

    def after_a_request(due: QuerySet[Session], some: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        if not went_on:
            went_on.extend(some)
            request = threading.Thread(target=_touch, args=(acme, old))
            request.start()
            request.join()
        return real(due, some)

    monkeypatch.setattr(work, "_locked", after_a_request)
    (sweep,) = swept()
    assert (went_on, sweep.state) == ([old.pk], ErasureState.OPEN)
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted) == (ErasureState.DONE, {})
    assert old.pk in there(acme)


def _touch(rows: Rows, session: Session) -> None:
    with tenant_scope(rows.tenant.pk):
        Session.objects.filter(pk=session.pk).update(last_turn_at=timezone.now())
    connection.close()


def test_a_reply_that_is_being_written_is_waited_for(acme: Rows) -> None:
    old = aged(acme, 40)
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(turn__session=old).delete()
        Turn.objects.filter(session=old).update(state=TurnState.PENDING)
    keep(acme, 30)
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted) == (ErasureState.OPEN, {})
    assert old.pk in there(acme)


def test_it_stops_once_sessions_are_kept_for_longer(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        aged(acme, 40 + number)
    keep(acme, 30)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 2)
    assert swept()[0].deleted["session"] == 2
    keep(acme, 60)
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted["session"]) == (ErasureState.DONE, 2)
    assert len(there(acme)) == 3
    # the oldest went first
    with tenant_scope(acme.tenant.pk):
        oldest = Session.objects.order_by("last_turn_at")[0].last_turn_at
        assert oldest is not None
        assert timezone.now() - oldest < 42 * DAY
    keep(acme, None)
    assert len(swept()) == 1


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_sweep_dies_anywhere_and_goes_on(acme: Rows, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    older(acme, 40)
    aged(acme, 41, turns=5)
    keep(acme, 30)
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 2)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    real, calls = work._note, []

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
            swept()
        with tenant_scope(acme.tenant.pk):
            assert books().problems == []
    (sweep,) = swept()
    assert sweep.state == ErasureState.DONE
    assert {name: sweep.deleted[name] for name in ("turn", "session", "sample", "vote")} == {
        "turn": 7,
        "session": 2,
        "sample": 7,
        "vote": 2,
    }
    with tenant_scope(acme.tenant.pk):
        assert LearnedFrom.objects.get(erasure=sweep).samples == 2
        assert AuditEntry.objects.filter(action="data.aged").count() == 1


def test_two_workers_are_one_sweep(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(6):
        aged(acme, 40, turns=3)
    keep(acme, 30)
    monkeypatch.setattr(work, "TURNS_AT_ONCE", 2)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)

    def go() -> None:
        swept()
        connection.close()

    both = [threading.Thread(target=go) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted["turn"], sweep.deleted["session"]) == (ErasureState.DONE, 18, 6)
    assert there(acme) == {acme.session.pk}


def test_samples_that_wait_are_withdrawn_and_a_step_with_one_is_ended(acme: Rows) -> None:
    old, young = aged(acme, 40, turns=2), aged(acme, 1)
    with tenant_scope(acme.tenant.pk):
        run = TrainingRun.objects.create(
            policy=acme.policy,
            state=RunState.RUNNING,
            trigger="threshold",
            lease_until=timezone.now() + dt.timedelta(seconds=60),
        )
        waiting, taken = Sample.objects.filter(turn__session=old)
        Sample.objects.filter(pk=waiting.pk).update(state=SampleState.READY, reason="")
        Sample.objects.filter(pk=taken.pk).update(state=SampleState.CLAIMED, run=run, reason="")
        Sample.objects.filter(turn__session=young).update(state=SampleState.CLAIMED, run=run, reason="")
    keep(acme, 30)
    (sweep,) = swept()
    assert sweep.deleted["sample"] == 2
    with tenant_scope(acme.tenant.pk):
        run.refresh_from_db()
        assert run.state == RunState.CANCELLED
        assert Sample.objects.get(turn__session=young).state == SampleState.READY
        assert not LearnedFrom.objects.filter(erasure=sweep).exists()
        assert books().problems == []


def test_what_repeats_a_question_goes_with_it(acme: Rows) -> None:
    old = aged(acme, 40)
    repeating, other = aged(acme, 1, turns=2, kind=TurnKind.SHADOW), aged(acme, 1, kind=TurnKind.SHADOW)
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(session=repeating).update(repeats=old.turns.get(), kind=TurnKind.SHADOW)
    keep(acme, 30)
    (sweep,) = swept()
    assert (sweep.deleted["turn"], sweep.deleted["session"]) == (3, 2)
    assert there(acme) == {acme.session.pk, other.pk}


def test_a_person_of_whom_nothing_is_left_goes_unless_they_opted_out(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        gone, out, stays = (EndUser.objects.create(external_id=name) for name in ("gone", "out", "stays"))
        OptOut.objects.create(end_user=out, actor="user:x")
    for person in (gone, out, stays):
        aged(acme, 40, end_user=person)
    aged(acme, 1, end_user=stays)
    keep(acme, 30)
    (sweep,) = swept()
    assert sweep.deleted["enduser"] == 1
    with tenant_scope(acme.tenant.pk):
        names = EndUser.objects.order_by("external_id").values_list("external_id", flat=True)
        assert list(names) == ["end-acme", "out", "stays"]
        assert OptOut.objects.filter(ended_at=None, end_user=out).count() == 1


def test_a_wish_goes_with_its_grounds_and_a_pinned_one_stays_in_its_own_words(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Evidence.objects.all().update(words="be brief")
        pinned = Preference.objects.get()
        person = Person(acme.policy.pk, acme.user.pk, pinned.end_user_id)
        unpinned, both = (
            Preference.objects.create(**person.columns(), source="hint", fingerprint=str(number) * 64)
            for number in range(2)
        )
        edit_preference(preference_id=pinned.pk, user_id=None, text=None, pinned=True, actor="user:x")
        young = aged(acme, 1, end_user=acme.session.end_user)
        for preference, words, turn in (
            (unpinned, "use lists", acme.turn),
            (both, "say it in French", acme.turn),
            (both, "in French please", young.turns.get()),
        ):
            Evidence.objects.create(preference=preference, turn=turn, words=words)
    older(acme, 40)
    keep(acme, 30)
    swept()
    with tenant_scope(acme.tenant.pk):
        told = json.dumps(told_now(acme.tenant.pk, person))
        assert "be brief" in told
        assert "in French please" in told
        assert "say it in French" not in told
        assert "use lists" not in told
        pinned.refresh_from_db()
        assert (pinned.own_words, pinned.pinned, pinned.revision) == ("be brief", True, 1)
        assert set(Preference.objects.values_list("pk", flat=True)) == {pinned.pk, both.pk}
        assert Preference.objects.get(pk=both.pk).own_words == ""


def test_a_deleted_session_takes_even_what_was_pinned_along(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Evidence.objects.all().update(words="be brief")
        Preference.objects.update(pinned=True)
        erasure = Erasure.objects.create(
            actor="user:x",
            subject=Subject.SESSION,
            subject_id=acme.session.pk,
            turns_total=2,
            moved_at=timezone.now(),
        )
    erase(tenant_id=str(erasure.tenant_id), erasure_id=str(erasure.pk))
    with tenant_scope(acme.tenant.pk):
        assert Preference.objects.get().own_words == ""


def test_a_sweep_waits_for_an_archive_and_leaves_those_that_are_there(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    with tenant_scope(acme.tenant.pk):
        export = jobs.request_export(tenant_id=acme.tenant.pk, actor="user:x")
    assert swept() == []
    with tenant_scope(acme.tenant.pk):
        Export.objects.filter(pk=export.pk).update(created_at=timezone.now() - dt.timedelta(hours=7))
        assert jobs.write(export_id=export.pk) is not None
        later = jobs.request_export(tenant_id=acme.tenant.pk, actor="user:x")
        Export.objects.filter(pk=later.pk).update(created_at=timezone.now() - dt.timedelta(hours=7))
    (sweep,) = swept()
    assert (sweep.state, "export" in sweep.deleted) == (ErasureState.DONE, False)
    with tenant_scope(acme.tenant.pk):
        states = Export.objects.filter(pk__in=(export.pk, later.pk)).order_by("pk")
        assert list(states.values_list("state", flat=True)) == [ExportState.READY, ExportState.QUEUED]


def test_what_will_go_and_when_is_told(acme: Rows) -> None:
    aged(acme, 40)
    aged(acme, 29.5)
    aged(acme, 10)
    with tenant_scope(acme.tenant.pk):
        policy = Policy.objects.get(pk=acme.policy.pk)
        assert (retention.outlook(policy).days, retention.outlook(policy).sessions) == (None, Counted(0))
        assert [would_go(policy, days) for days in (None, 365, 30, 20, 5)] == [None, None, 1, 2, 3]
    keep(acme, 30)
    with tenant_scope(acme.tenant.pk):
        policy.refresh_from_db()
        seen = retention.outlook(policy)
        assert (seen.days, seen.sessions, seen.under_way) == (30, Counted(1), None)
        assert seen.at <= timezone.now()
        assert [would_go(policy, days) for days in (None, 30, 60, 20)] == [None, None, None, 2]
    (sweep,) = swept()
    with tenant_scope(acme.tenant.pk):
        # by the next one, another of them is old enough
        seen = retention.outlook(policy)
        assert (seen.at, seen.sessions) == (sweep.created_at + DAY, Counted(1))


def would_go(policy: Policy, days: int | None) -> int | None:
    taken = retention.would_take(policy, days)
    return None if taken is None else taken.sessions.number


def test_a_configuration_that_is_not_taken_any_more_deletes_nothing(acme: Rows) -> None:
    aged(acme, 40)
    with tenant_scope(acme.tenant.pk):
        policy = Policy.objects.get(pk=acme.policy.pk)
        policy.config = {"retention_days": 30, "speed": 7}
        policy.save(update_fields=["config"])
        assert retention.outlook(policy).days is None
    assert swept() == []


@pytest.mark.parametrize(
    "values",
    [
        {"subject": "aged", "subject_id": uuid.uuid4()},
        {"subject": "aged", "subject_id": uuid.uuid4(), "older_than_days": 0},
        {"subject": "aged", "older_than_days": 3},
        {"subject": "session", "subject_id": uuid.uuid4(), "older_than_days": 3},
        {"subject": "everything", "older_than_days": 3},
    ],
)
def test_postgres_refuses_a_sweep_of_no_policy_or_no_age(acme: Rows, values: dict[str, Any]) -> None:
    fields = {"turns_total": 0, "moved_at": timezone.now(), "actor": "x"}
    with tenant_scope(acme.tenant.pk):
        with pytest.raises(IntegrityError), transaction.atomic():
            Erasure.objects.create(**fields | values)
        good = {"subject": "aged", "subject_id": acme.policy.pk, "older_than_days": 1}
        Erasure.objects.create(**fields | good)
        with pytest.raises(IntegrityError), transaction.atomic():
            Erasure.objects.create(**fields | good | {"older_than_days": 2})


def test_each_step_of_a_sweep_reads_what_it_takes_and_no_more(acme: Rows) -> None:
    """Of 20,000 sessions, most of them aged and one with 20,000 turns,
    a step reads at most a hundred rows a query."""
    with system_scope("fill"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO conversations_session (id, tenant_id, created_at, user_id, policy_id, kind, last_turn_at) "
            "SELECT gen_random_uuid(), %(tenant)s, now() - n * interval '5 minutes', %(user)s, %(policy)s, 'live', "
            "now() - n * interval '5 minutes' FROM generate_series(1, 20000) n",
            {"tenant": acme.tenant.pk, "user": acme.user.pk, "policy": acme.policy.pk},
        )
        cursor.execute(
            "INSERT INTO conversations_turn (id, tenant_id, created_at, session_id, policy_id, kind, side, state, "
            "messages, sampling, template_kwargs, prompt_ids, prompt_source, prompt_reason, request_hash, body_sha256, "
            "reply_hash, output_ids, output_logprobs, spans, finish_reason, usage, error) "
            "SELECT gen_random_uuid(), s.tenant_id, s.created_at + n * interval '1 second', s.id, s.policy_id, 'live', "
            "false, 'failed', '[]', '{}', '{}', '{}', 'first', '', '', '', '', '{}', '{}', '[]', '', '{}', '' "
            "FROM (SELECT *, row_number() OVER (ORDER BY created_at) AS place FROM conversations_session "
            "WHERE tenant_id = %s) s, generate_series(1, CASE s.place WHEN 1 THEN 20000 ELSE 2 END) n",
            [acme.tenant.pk],
        )
    with psycopg.connect(owner_url(), autocommit=True) as owner:
        owner.execute("ANALYZE conversations_session, conversations_turn")
    with tenant_scope(acme.tenant.pk):
        meant = Meant.aged(acme.policy.pk, days=7, at=timezone.now())
        pending = Turn.objects.filter(session=OuterRef("pk"), state=TurnState.PENDING)
        due = (
            meant.sessions()
            .filter(~Exists(pending))
            .order_by(*meant.oldest_first())
            .values_list("pk", flat=True)
        )
        assert due.count() == 17_985  # all but those of the last 2,015 times five minutes
        first = list(due[:20])
        turns = Turn.objects.filter(session__in=first).order_by("-session_id", "-created_at")
        assert turns.count() == 20_000 + 19 * 2
        assert rows_read(due[:20], "session_by_age") <= 100
        assert rows_read(turns.values("pk")[:100], "turn_by_session") <= 100
        some = list(turns.values_list("pk", flat=True)[:100])
        assert rows_read(Turn.objects.filter(repeats__in=some).values("pk"), "turn_by_repeated") == 0


def rows_read(rows: QuerySet[Any, Any], index: str) -> float:
    """Return how many rows of tables a query reads, which goes by that index."""
    plan = json.loads(rows.explain(format="json", analyze=True))[0]["Plan"]
    nodes = list(nodes_of(plan))
    assert index in {node.get("Index Name") for node in nodes}, plan
    return sum(node["Actual Rows"] * node["Actual Loops"] for node in nodes if "Relation Name" in node)


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan."""
    yield plan
    for one in plan.get("Plans", ()):
        yield from nodes_of(one)
