"""When a sweep begins and ends: once, for its own tenant, not before it is due,
and not after it was called off."""

import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnState
from apps.governance import retention
from apps.governance.erasure import extent, work
from apps.governance.erasure.extent import Counted
from apps.governance.erasure.lineage import known_of
from apps.governance.erasure.subjects import Meant, consumed_by_version
from apps.governance.export import jobs
from apps.governance.models import Erasure, ErasureState, Export
from apps.learning.models import Sample, SampleState
from apps.memory.models import Evidence
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.governance.sweeping import DAY, aged, keep, older, swept, there, yesterday
from tests.locks import wait_for_a_lock
from workers import upkeep


def policy_of(rows: Rows) -> Policy:
    """Return the tenant's policy as it is now; in the tenant's scope."""
    return Policy.objects.get(pk=rows.policy.pk)


def test_the_next_sweep_is_never_said_to_be_in_the_past(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    assert swept()[0].state == ErasureState.DONE
    for _ in range(3):
        yesterday(acme)
    before = timezone.now()
    with tenant_scope(acme.tenant.pk):
        seen = retention.outlook(policy_of(acme))
    assert before <= seen.at <= timezone.now()
    assert (seen.sessions, seen.under_way) == (Counted(0), None)


def test_a_sweep_is_under_way_until_it_is_done(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    upkeep.begin_sweeps()
    with tenant_scope(acme.tenant.pk):
        under_way = retention.outlook(policy_of(acme)).under_way
        assert under_way is not None
        assert under_way.state == ErasureState.OPEN
    swept()
    with tenant_scope(acme.tenant.pk):
        assert retention.outlook(policy_of(acme)).under_way is None


def test_a_sweep_calls_a_worker(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    upkeep.begin_sweeps()
    with system_scope("look"):
        sweep = Erasure.objects.get(subject="aged")
        (message,) = OutboxMessage.objects.filter(task="workers.governance.erase")
    assert message.kwargs == {"erasure_id": str(sweep.pk), "tenant_id": str(acme.tenant.pk)}


def test_of_two_who_look_at_once_the_second_finds_the_first_ones_sweep(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    came: list[Any] = []

    def look() -> None:
        try:
            with tenant_scope(acme.tenant.pk):
                came.append(retention.begin(acme.policy.pk))
        except Exception as error:
            came.append(error)
        finally:
            connection.close()

    second = threading.Thread(target=look)
    with tenant_scope(acme.tenant.pk), transaction.atomic():
        first = retention.begin(acme.policy.pk)
        second.start()
        wait_for_a_lock()
    second.join()
    assert first is not None
    assert came == [None]


def test_no_second_sweep_is_begun_beside_one_that_is_open_whatever_its_days(acme: Rows) -> None:
    aged(acme, 40)
    keep(acme, 30)
    upkeep.begin_sweeps()
    aged(acme, 25)
    keep(acme, 20)
    upkeep.begin_sweeps()
    with tenant_scope(acme.tenant.pk):
        assert [one.older_than_days for one in Erasure.objects.filter(subject="aged")] == [30]
    assert [one.older_than_days for one in swept()] == [30]
    assert [one.older_than_days for one in swept()] == [30, 20]
    assert there(acme) == {acme.session.pk}


def test_a_sweep_is_once_a_day_after_several_of_other_days_and_whoever_looks(acme: Rows) -> None:
    keep(acme, 30)
    for number in range(1, 3):
        yesterday(acme)
        aged(acme, 40)
        assert len(swept()) == number
    late = aged(acme, 40)
    assert len(swept()) == 2
    with tenant_scope(acme.tenant.pk):
        assert retention.begin(acme.policy.pk) is None
    assert late.pk in there(acme)


def test_an_archive_of_another_tenant_or_one_that_is_there_holds_nothing_up(acme: Rows) -> None:
    other = fill("globex")
    aged(acme, 40)
    keep(acme, 30)
    with tenant_scope(other.tenant.pk):
        jobs.request_export(tenant_id=other.tenant.pk, actor="user:x")
    with tenant_scope(acme.tenant.pk):
        export = jobs.request_export(tenant_id=acme.tenant.pk, actor="user:x")
        assert jobs.write(export_id=export.pk) is not None
        assert Export.objects.get(pk=export.pk).created_at > timezone.now() - DAY
    assert [one.state for one in swept()] == [ErasureState.DONE]


def test_it_stops_once_sessions_are_kept_for_good(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        aged(acme, 40 + number)
    keep(acme, 30)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 2)
    assert swept()[0].deleted["session"] == 2
    keep(acme, None)
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted["session"]) == (ErasureState.DONE, 2)
    assert len(there(acme)) == 3


def test_fewer_days_call_nothing_off(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        aged(acme, 40 + number)
    keep(acme, 30)
    monkeypatch.setattr(work, "SESSIONS_AT_ONCE", 1)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 2)
    swept()
    keep(acme, 10)
    monkeypatch.setattr(work, "STEPS_A_MESSAGE", 200)
    (sweep,) = swept()
    assert (sweep.state, sweep.deleted["session"]) == (ErasureState.DONE, 4)


def test_a_session_without_a_turn_goes_by_its_beginning(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        old, young = (Session.objects.create(user=acme.user, policy=acme.policy) for _ in range(2))
        Session.objects.filter(pk=old.pk).update(created_at=timezone.now() - 31 * DAY)
        # begun long ago, and gone on with
        Session.objects.filter(pk=acme.session.pk).update(created_at=timezone.now() - 31 * DAY)
    keep(acme, 30)
    (sweep,) = swept()
    assert sweep.deleted == {"session": 1}
    assert there(acme) == {young.pk, acme.session.pk}


def test_what_would_be_taken_is_counted_from_the_oldest(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are left out of a count are the youngest: what goes first is what the page tells of."""
    older(acme, 50)
    aged(acme, 40, turns=3)
    monkeypatch.setattr(extent, "MOST_COUNTED", 1)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=acme.session.pk).update(created_at=timezone.now())
    with tenant_scope(acme.tenant.pk), transaction.atomic(), connection.cursor() as cursor:
        # a table may be read in another order than that of age
        cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
        taken = retention.would_take(policy_of(acme), 30)
    assert taken is not None
    assert taken.sessions == taken.turns == Counted(1, is_more=True)
    (known,) = taken.known
    assert [(version.number, samples) for version, samples in known.learned] == [(2, 1)]


def test_as_much_as_is_counted_is_not_more(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    older(acme, 50)
    keep(acme, 30)
    monkeypatch.setattr(extent, "MOST_COUNTED", 1)
    with tenant_scope(acme.tenant.pk):
        seen = retention.outlook(policy_of(acme))
        assert seen.sessions == Counted(1)
    aged(acme, 40)
    with tenant_scope(acme.tenant.pk):
        seen = retention.outlook(policy_of(acme))
        assert seen.sessions == Counted(1, is_more=True)


def test_only_versions_whose_step_had_the_samples_are_named(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        meant = Meant.aged(acme.policy.pk, days=1, at=timezone.now() + 2 * DAY)
        assert consumed_by_version(meant.turns()) == {acme.version.pk: 2}
        Sample.objects.filter(turn=acme.turn).update(
            state=SampleState.DROPPED, reason="stale", consumed_at=None
        )
        assert consumed_by_version(meant.turns()) == {acme.version.pk: 1}
        assert len(known_of(consumed_by_version(meant.turns()))) == 1


def test_a_name_that_nobody_has_said_anything_under_is_no_matter_of_age(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        EndUser.objects.create(external_id="idle")
    aged(acme, 40)
    keep(acme, 30)
    (sweep,) = swept()
    assert sweep.deleted == {"sample": 1, "session": 1, "turn": 1}
    with tenant_scope(acme.tenant.pk):
        assert EndUser.objects.count() == 2


def test_what_was_said_is_told_on_while_a_sweep_waits_for_a_reply(acme: Rows) -> None:
    """Age takes what wishes rest on with the turns, not before: what is pinned then keeps its words."""
    older(acme, 40)
    keep(acme, 30)
    with tenant_scope(acme.tenant.pk):
        grounds = set(Evidence.objects.values_list("pk", flat=True))
        Sample.objects.filter(turn=acme.turn).delete()
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, completed_at=None, reply=None)
    (sweep,) = swept()
    assert (sweep.state, sweep.reason) == (ErasureState.OPEN, "waits for a reply that is being written")
    with tenant_scope(acme.tenant.pk):
        assert set(Evidence.objects.values_list("pk", flat=True)) == grounds != set()


def test_days_are_counted_from_when_the_sweep_was_begun(acme: Rows) -> None:
    """What becomes old enough while it waits is the next one's."""
    old, nearly = aged(acme, 40), aged(acme, 29.5)
    keep(acme, 30)
    upkeep.begin_sweeps()
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=nearly.pk).update(last_turn_at=timezone.now() - dt.timedelta(days=30))
        Erasure.objects.filter(subject="aged").update(created_at=timezone.now() - DAY / 2)
    swept()
    assert there(acme) == {acme.session.pk, nearly.pk}
    assert old.pk not in there(acme)
