"""Whatever changes what turns sum up to throws away what was kept of it:
at once, surely, and nothing else."""

import datetime as dt
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import InternalError, OperationalError, connection, transaction
from django.utils import timezone

from apps.conversations.models import Session, Turn
from apps.dashboard.models import TurnRollup
from apps.dashboard.rollups import filling
from apps.dashboard.rollups.filling import sum_up, sum_up_due
from apps.dashboard.rollups.stretches import begin
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.erasure.work import Step, erase
from apps.governance.models import Subject
from apps.learning.models import Sample
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.dashboard.turns_in_time import direct, put, same, scatter
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()
DAY = begin(NOW - dt.timedelta(days=4), 720)
AT = DAY + dt.timedelta(hours=4, minutes=40)  # in the half-hour from 4:30, the three hours from 3:00
OTHER = DAY + dt.timedelta(hours=1)


@pytest.fixture
def somebody() -> Somebody:
    return add_somebody()


@contextmanager
def rows(somebody: Somebody, *, commit: bool = True) -> Iterator[psycopg.Cursor]:
    """A transaction in the tenant's scope."""
    with tenant_scope(somebody.tenant.pk), transaction.atomic(), connection.cursor() as cursor:
        yield cursor
        transaction.set_rollback(not commit)


def summed(somebody: Somebody) -> list[str]:
    """Return what is kept, oldest first."""
    with tenant_scope(somebody.tenant.pk):
        found = list(
            TurnRollup.objects.order_by("begins_at", "minutes").values_list(
                "begins_at", "minutes", "of_policy"
            )
        )
        kept = [f"{begins - DAY} {minutes}" for begins, minutes, policy in found if policy is None]
        # of one policy the same
        assert kept == [
            f"{begins - DAY} {minutes}" for begins, minutes, policy in found if policy is not None
        ]
        return kept


ALL = ["0:00:00 180", "0:00:00 720", "1:00:00 30", "3:00:00 180", "4:30:00 30"]
WITHOUT_IT = ["0:00:00 180", "1:00:00 30"]


@pytest.fixture
def turns(somebody: Somebody) -> tuple[uuid.UUID, uuid.UUID]:
    """Two half-hours of a half-day, all summed up; the first turn, at AT, has a reward."""
    one, other = scatter(somebody, 2)
    put({one: AT, other: OTHER})
    with rows(somebody) as cursor:
        cursor.execute(
            "UPDATE conversations_turn SET kind = 'live', usage = '{}', first_token_ms = 5, latency_ms = 7,"
            " state = 'failed' WHERE id = %s",
            [one],
        )
        Sample.objects.filter(turn=one).delete()
        Sample.objects.create(policy=somebody.policy, turn_id=one, source="live", reward=1.0)
    sum_up_due(limit=100)
    assert summed(somebody) == ALL
    return one, other


def sql(statement: str) -> Callable[[Somebody, uuid.UUID], object]:
    def change(somebody: Somebody, turn: uuid.UUID) -> None:
        with rows(somebody) as cursor:
            cursor.execute(statement, {"turn": turn, "at": AT, "other": OTHER})

    return change


def deleted(somebody: Somebody, turn: uuid.UUID) -> None:
    with rows(somebody):
        Turn.objects.filter(pk=turn).delete()


def erased(somebody: Somebody, turn: uuid.UUID) -> None:
    with rows(somebody):
        other = Session.objects.create(user=somebody.user, policy=somebody.policy)
        Turn.objects.exclude(pk=turn).update(session=other)
        meant = Meant(Subject.SESSION, Turn.objects.get(pk=turn).session_id)
    with tenant_scope(somebody.tenant.pk):
        asked = request_erasure(tenant_id=somebody.tenant.pk, meant=meant, actor="user:x")
        assert erase(erasure_id=asked.pk) == Step.DONE
        assert not Turn.objects.filter(pk=turn).exists()


def added(somebody: Somebody, turn: uuid.UUID) -> None:
    with rows(somebody) as cursor:
        cursor.execute("SELECT * FROM conversations_turn WHERE id = %s", [turn])
        columns = [column.name for column in cursor.description or ()]
        values = [{"id": "gen_random_uuid()", "next_turn_id": "NULL"}.get(name, name) for name in columns]
        cursor.execute(
            f"INSERT INTO conversations_turn ({', '.join(columns)}) SELECT {', '.join(values)}"  # noqa: S608
            " FROM conversations_turn WHERE id = %s",
            [turn],
        )


def sampled(somebody: Somebody, turn: uuid.UUID) -> None:
    with rows(somebody):
        Sample.objects.filter(turn=turn).delete()
    sum_up_due(limit=100)
    assert summed(somebody) == ALL
    with rows(somebody):
        Sample.objects.create(policy=somebody.policy, turn_id=turn, source="live", reward=0.5)


CHANGES: dict[str, Callable[[Somebody, uuid.UUID], object]] = {
    "a turn is deleted": deleted,
    "its session is erased": erased,
    "a turn is added": added,
    "it becomes another kind": sql("UPDATE conversations_turn SET kind = 'shadow' WHERE id = %(turn)s"),
    "it ends otherwise": sql("UPDATE conversations_turn SET state = 'aborted' WHERE id = %(turn)s"),
    "tokens": sql("UPDATE conversations_turn SET usage = '{\"prompt_tokens\": 9}' WHERE id = %(turn)s"),
    "first token": sql("UPDATE conversations_turn SET first_token_ms = NULL WHERE id = %(turn)s"),
    "last token": sql("UPDATE conversations_turn SET latency_ms = 8 WHERE id = %(turn)s"),
    "it moves": sql("UPDATE conversations_turn SET created_at = now() WHERE id = %(turn)s"),
    "another reward": sql("UPDATE learning_sample SET reward = -1 WHERE turn_id = %(turn)s"),
    "no reward": sql("UPDATE learning_sample SET reward = NULL WHERE turn_id = %(turn)s"),
    "no sample": sql("DELETE FROM learning_sample WHERE turn_id = %(turn)s"),
    "a sample": sampled,
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_change_makes_wrong_is_gone_with_it(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID], what: str
) -> None:
    before = direct(somebody.tenant.pk, "7d", NOW)
    CHANGES[what](somebody, turns[0])
    assert summed(somebody) == WITHOUT_IT
    assert direct(somebody.tenant.pk, "7d", NOW) != before
    same(somebody.tenant.pk, "7d", NOW)
    same(somebody.tenant.pk, "30d", NOW)
    sum_up_due(limit=100)
    same(somebody.tenant.pk, "30d", NOW)


def test_a_turn_that_comes_from_elsewhere_makes_its_new_place_wrong_too(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]
) -> None:
    sql("UPDATE conversations_turn SET created_at = %(other)s WHERE id = %(turn)s")(somebody, turns[0])
    assert summed(somebody) == []


def test_a_change_that_changes_no_sum_throws_nothing_away(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]
) -> None:
    with rows(somebody):
        Turn.objects.filter(pk=turns[0]).update(next_state=[], next_state_at=NOW, error="x", side=True)
        Sample.objects.filter(turn=turns[0]).update(state="dropped", reason="stale", weight=0.5)
    assert summed(somebody) == ALL


def test_a_change_that_is_rolled_back_throws_nothing_away(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]
) -> None:
    with rows(somebody, commit=False):
        Turn.objects.filter(pk=turns[0]).delete()
        assert summed(somebody) == WITHOUT_IT
    assert summed(somebody) == ALL


def test_no_other_tenant_loses_anything(somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]) -> None:
    other = add_somebody("globex")
    theirs, _ = scatter(other, 2)
    put({theirs: AT})
    sum_up_due(limit=100)
    before = summed(other)
    assert "4:30:00 30" in before
    deleted(somebody, turns[0])
    assert summed(other) == before


def test_whoever_may_change_turns_throws_away(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID], owner_connection: psycopg.Connection
) -> None:
    """Under the system's role and the owner's, who have no tenant in scope."""
    with system_scope("tests"):
        Turn.objects.filter(pk=turns[0]).update(state="aborted")
    assert summed(somebody) == WITHOUT_IT
    sum_up_due(limit=100)
    assert summed(somebody) == ALL
    with owner_connection.transaction():
        owner_connection.execute("UPDATE conversations_turn SET latency_ms = 1 WHERE id = %s", [turns[0]])
    assert summed(somebody) == WITHOUT_IT


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_who_would_not_see_what_is_kept_may_not_change_a_turn_nor_keep_sums(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID], level: str
) -> None:
    def run(statement: str) -> None:
        with transaction.atomic():
            connection.connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            with tenant_scope(somebody.tenant.pk), connection.cursor() as cursor:
                cursor.execute(statement, {"turn": turns[0]})

    for statement in (
        "UPDATE conversations_turn SET latency_ms = 9 WHERE id = %(turn)s",
        "DELETE FROM learning_sample WHERE turn_id = %(turn)s",
        "SELECT attune_hold_half_hours(gen_random_uuid(), now(), 30)",
    ):
        with pytest.raises(InternalError, match="READ COMMITTED"):
            run(statement)
    assert summed(somebody) == ALL


def beside(call: Callable[[], object]) -> tuple[threading.Thread, dict[str, object]]:
    """Call on another connection."""
    came: dict[str, object] = {}

    def run() -> None:
        try:
            came["back"] = call()
        except Exception as error:
            came["back"] = error
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, came


def somebody_waits() -> bool:
    with system_scope("tests"), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database db ON db.oid = database"
            " WHERE db.datname = current_database() AND NOT granted AND locktype = 'advisory'"
        )
        (count,) = cursor.fetchone()
        return bool(count)


def test_nothing_is_kept_while_a_change_is_under_way(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]
) -> None:
    tenant = somebody.tenant.pk
    with rows(somebody):
        Turn.objects.filter(pk=turns[0]).delete()
        for begins, minutes in ((AT, 30), (AT, 180), (AT, 720)):
            thread, came = beside(partial(sum_up, tenant, begin(begins, minutes), minutes))
            thread.join(60)
            assert came == {"back": False}
        thread, came = beside(partial(sum_up, tenant, begin(OTHER, 30), 30))  # another half-hour
        thread.join(60)
        assert came == {"back": True}
    assert summed(somebody) == WITHOUT_IT
    sum_up_due(limit=100)
    assert summed(somebody) == ["0:00:00 180", "0:00:00 720", "1:00:00 30"]
    assert same(tenant, "7d", NOW).failed == direct(tenant, "7d", NOW)["sums"][0][1]


def test_a_change_beside_the_sums_waits_and_then_throws_them_away(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = somebody.tenant.pk
    sql("UPDATE conversations_turn SET latency_ms = 9 WHERE id = %(turn)s")(somebody, turns[0])
    read, goes_on = threading.Event(), threading.Event()
    sums_of = filling.sums_of

    def slow(*args: Any) -> Any:
        found = sums_of(*args)
        read.set()
        assert goes_on.wait(60)
        return found

    monkeypatch.setattr(filling, "sums_of", slow)
    keeps, kept = beside(partial(sum_up, tenant, begin(AT, 30), 30))
    assert read.wait(60)
    changes, _ = beside(partial(deleted, somebody, turns[0]))
    try:
        while changes.is_alive() and not somebody_waits():
            time.sleep(0.02)
        assert changes.is_alive()
        assert "4:30:00 30" not in summed(somebody)
    finally:
        goes_on.set()
        keeps.join(60)
        changes.join(60)
    assert kept == {"back": True}
    assert summed(somebody) == WITHOUT_IT
    same(tenant, "7d", NOW)


def test_who_sums_up_waits_for_nobody(somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID]) -> None:
    """Not even for who holds the tenant: what waits while it holds half-hours may
    be waited for in a circle."""
    sql("UPDATE conversations_turn SET latency_ms = 9 WHERE id = %(turn)s")(somebody, turns[0])
    with rows(somebody) as cursor:
        cursor.execute("SELECT FROM accounts_tenant WHERE id = %s FOR UPDATE", [somebody.tenant.pk])
        thread, came = beside(partial(sum_up, somebody.tenant.pk, begin(AT, 30), 30))
        thread.join(60)
        assert came == {"back": False}


def test_a_process_that_dies_between_sums_and_rows_keeps_nothing(
    somebody: Somebody, turns: tuple[uuid.UUID, uuid.UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(somebody, turns[0])
    put({turns[1]: AT})
    with monkeypatch.context() as patched:

        def dies(*_: object) -> None:
            raise OperationalError("the connection is gone")

        patched.setattr(filling, "_row", dies)
        with pytest.raises(OperationalError):
            sum_up_due(limit=100)
    assert summed(somebody) == []
    assert sum_up_due(limit=100) == 3
    same(somebody.tenant.pk, "7d", NOW)


STORM = [
    ["UPDATE conversations_turn SET latency_ms = random() * 1000 WHERE id = %s"],
    ["UPDATE learning_sample SET reward = -reward - 0.5 WHERE turn_id = %s"],
    [
        "UPDATE conversations_turn SET created_at = created_at - interval '31 minutes', usage = '{}' WHERE id = %s"
    ],
    ["DELETE FROM learning_sample WHERE turn_id = %s", "DELETE FROM conversations_turn WHERE id = %s"],
]


def test_what_is_kept_is_right_at_every_moment_of_a_storm(somebody: Somebody) -> None:
    """Changes, sums and looks at once; each look compares what is kept with the turns in
    one snapshot of Postgres."""
    tenant = somebody.tenant.pk
    turns = scatter(somebody, 120, days=0.8, now=NOW - dt.timedelta(hours=1))
    over = threading.Event()

    def change(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(30):
            with rows(somebody, commit=draw.random() < 0.9) as cursor:
                turn = [draw.choice(turns)]
                cursor.execute("SELECT FROM conversations_turn WHERE id = %s FOR UPDATE", turn)
                for statement in draw.choice(STORM):
                    cursor.execute(statement, turn)
                time.sleep(draw.random() * 0.02)

    def fill() -> None:
        while not over.is_set():
            sum_up_due(limit=7)

    def look() -> None:
        looks = 0
        while not over.is_set() or not looks:
            with transaction.atomic():
                connection.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                for span in ("1d", "30d"):
                    same(tenant, span, NOW)
            looks += 1

    changing = [beside(partial(change, seed)) for seed in range(3)]
    others = [beside(fill), beside(fill), beside(look)]
    for thread, _ in changing:
        thread.join()
    over.set()
    for thread, _ in others:
        thread.join()
    faults = [came["back"] for _, came in changing + others if came["back"] is not None]
    assert faults == []
    with tenant_scope(tenant):
        assert TurnRollup.objects.exists()
    while sum_up_due(limit=100):
        pass
    for span in ("1d", "7d", "30d"):
        same(tenant, span, NOW)
