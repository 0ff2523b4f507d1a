"""How much a deletion would take: counted to a bound, whatever there is, and said to be more."""

import json
import random
import uuid
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import EndUser
from apps.adapters.models import AdapterVersion, VersionState
from apps.governance.erasure import extent, lineage
from apps.governance.erasure.extent import Counted, extent_of
from apps.governance.erasure.subjects import Meant
from apps.governance.models import Subject
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.governance.sweeping import aged
from tests.services import owner_url
from tests.tenants import add_version

SESSIONS = 20_000  # every other one of the end user, the others of the member alone; two turns each


def meant(rows: Rows) -> dict[Subject, Meant]:
    """Return what each kind of deletion would be of, in the tenant's scope."""
    return {
        Subject.SESSION: Meant(Subject.SESSION, rows.session.pk),
        Subject.END_USER: Meant(Subject.END_USER, EndUser.objects.get().pk),
        Subject.MEMBER: Meant(Subject.MEMBER, rows.user.pk),
        Subject.EVERYTHING: Meant(Subject.EVERYTHING),
    }


def copied(owner: psycopg.Connection[Any], table: str, source: uuid.UUID, count: int, **changed: str) -> None:
    """Write so many copies of a row, numbered k from 1, but for what is changed (SQL)."""
    found = owner.execute("SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table])
    names = [name for (name,) in found.fetchall()]
    values = ", ".join(changed.get(name, f'source."{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    owner.execute(
        f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} source, generate_series(1, {count}) k"  # noqa: S608
        f" WHERE source.id = '{source}'".encode()
    )


@pytest.fixture
def crowd(acme: Rows) -> Rows:
    """Return a tenant with many sessions; a hundred of them repeat the end user's questions."""
    when = "source.created_at - k * interval '1 minute'"
    with psycopg.connect(owner_url(), autocommit=True) as owner:
        owner.execute("SET session_replication_role = replica")  # triggers are not what is looked at
        copied(
            *(owner, "conversations_session", acme.session.pk, SESSIONS),
            id="md5('session ' || k)::uuid",
            created_at=when,
            external_id="NULL",
            last_turn_at=when,
            end_user_id="CASE k % 2 WHEN 0 THEN source.end_user_id END",
            kind="CASE k % 200 WHEN 0 THEN 'shadow' ELSE 'live' END",
        )
        copied(
            *(owner, "conversations_turn", acme.turn.pk, SESSIONS * 2),
            id="md5('turn ' || k)::uuid",
            created_at=when,
            session_id=f"md5('session ' || (k % {SESSIONS} + 1))::uuid",
            parent_id="NULL",
            next_turn_id="NULL",
            idempotency_key="NULL",
        )
        copied(
            *(owner, "learning_sample", acme.sample.pk, SESSIONS * 2),
            id="md5('sample ' || k)::uuid",
            created_at=when,
            turn_id="md5('turn ' || k)::uuid",
        )
        owner.execute("ANALYZE")
    return acme


def rows_read(sql: str) -> float:
    """Return how many rows of tables a query looks at."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        (found,) = cursor.fetchone() or ("",)
    plan = found if isinstance(found, list) else json.loads(found)
    return _looked_at(plan[0]["Plan"])


def _looked_at(node: Mapping[str, Any]) -> float:
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    inside = sum(_looked_at(one) for one in node.get("Plans", ()))
    return inside + (own if "Relation Name" in node else 0)


def test_what_a_page_reads_does_not_grow_with_what_would_go(
    crowd: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 sessions with 40,000 turns, no query looks at more than the bound of
    each table that it joins."""
    monkeypatch.setattr(extent, "MOST_COUNTED", 500)
    full = Counted(500, is_more=True)
    found = {}
    with tenant_scope(crowd.tenant.pk):
        for subject, wish in meant(crowd).items():
            with CaptureQueriesContext(connection) as asked:
                taken = extent_of(wish)
            found[subject] = (taken.sessions, taken.turns, taken.is_part)
            read = {one["sql"]: rows_read(one["sql"]) for one in asked if one["sql"].startswith("SELECT")}
            assert max(read.values()) <= 5 * 501, (subject, read)
            (known,) = taken.known
            assert known.learned == ((crowd.version, taken.turns.number),)
    assert found == {
        Subject.SESSION: (Counted(101), Counted(202), False),
        Subject.END_USER: (full, full, True),
        Subject.MEMBER: (full, full, True),
        Subject.EVERYTHING: (full, full, True),
    }


def test_it_is_counted_to_the_bound_and_one_further(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    with tenant_scope(acme.tenant.pk):
        wishes = meant(acme)
        for most, turns in ((3, Counted(2)), (2, Counted(2)), (1, Counted(1, is_more=True))):
            monkeypatch.setattr(extent, "MOST_COUNTED", most)
            for subject in (Subject.SESSION, Subject.END_USER, Subject.EVERYTHING):
                taken = extent_of(wishes[subject])
                assert (taken.sessions, taken.turns, taken.is_part) == (Counted(1), turns, turns.is_more)
                assert taken.preferences == Counted(0 if subject == Subject.SESSION else 1)
                assert [samples for _, samples in taken.known[0].learned] == [turns.number]
            nothing = extent_of(wishes[Subject.MEMBER])
            assert (nothing.sessions, nothing.turns, nothing.known) == (Counted(0), Counted(0), [])


def test_of_everything_the_turns_are_counted_whatever_their_sessions(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest sessions, up to the bound, are empty."""
    for _ in range(2):
        aged(acme, 40, turns=0)
    monkeypatch.setattr(extent, "MOST_COUNTED", 2)
    with tenant_scope(acme.tenant.pk):
        taken = extent_of(Meant(Subject.EVERYTHING))
        assert (taken.sessions, taken.turns) == (Counted(2, is_more=True), Counted(2))
        assert [samples for _, samples in taken.known[0].learned] == [2]


def test_a_page_names_some_versions_and_counts_the_rest(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "NAMED", 1)
    with tenant_scope(acme.tenant.pk):
        (known,) = lineage.known_of({acme.older.pk: 3, acme.version.pk: 2})
        assert (known.learned, known.more_learned) == (((acme.older, 3),), 1)
        assert (known.built_on, known.more_built_on, known.clean, known.live_knows) == ((), 0, None, True)
        (known,) = lineage.known_of({acme.older.pk: 3})
        assert (known.learned, known.built_on, known.more_built_on) == (
            ((acme.older, 3),),
            (acme.version,),
            0,
        )
        (known,) = lineage.known_of({acme.version.pk: 2})
        assert (known.clean, known.live_knows) == (acme.older, True)


def test_the_newest_version_of_another_branch_is_the_one_to_go_back_to(acme: Rows) -> None:
    """Trained from the base after a rollback, they know nothing of what the older branch learned."""
    for number in (3, 4):
        add_version(acme.policy, number, live=False)
    with tenant_scope(acme.tenant.pk):
        AdapterVersion.objects.filter(number=4).update(state=VersionState.RETIRED)
        newest = add_version(acme.policy, 5, live=False)
        (known,) = lineage.known_of({acme.older.pk: 3})
        assert (known.built_on, known.clean, known.live_knows) == ((acme.version,), newest, True)
        AdapterVersion.objects.filter(pk=newest.pk).update(state=VersionState.RETIRED)
        (known,) = lineage.known_of({acme.older.pk: 3})
        assert known.clean is not None
        assert known.clean.number == 3
        (known,) = lineage.known_of({newest.pk: 3})  # of those before it, the newest too
        assert known.clean is not None
        assert known.clean.number == 3


@pytest.mark.parametrize("seed", range(200))
def test_branches_say_of_every_version_whether_it_knows(seed: int) -> None:
    draw = random.Random(seed)
    newest = draw.randint(1, 14)
    parents = {
        number: (number - 1 or None) if draw.random() < 0.6 else draw.choice([None, *range(1, number)])
        for number in range(1, newest + 1)
    }
    learned = sorted(draw.sample(range(1, newest + 1), draw.randint(1, min(3, newest))))
    turnings = [
        (number, parent) for number, parent in parents.items() if number > learned[0] and parent != number - 1
    ]
    branches = lineage.branches_of(learned, turnings, newest)
    knowing: set[int] = set()
    for number, parent in parents.items():
        if number in learned or parent in knowing:
            knowing.add(number)
    assert [number for one in branches for number in (*one.clean, *one.knowing)] == [
        *range(learned[0], newest + 1)
    ]
    assert {number for one in branches for number in one.knowing} == knowing


def test_of_many_versions_only_those_that_are_named_are_read(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two branches: one from what learned, up to version 60,
    and one from the version before it, up to version 80."""
    monkeypatch.setattr(lineage, "NAMED", 3)
    before = acme.version
    made = {2: before}
    for number in range(3, 81):
        parent = before if number == 61 else made[number - 1]
        made[number] = add_version(acme.policy, number, live=number == 60, parent=parent)
    with tenant_scope(acme.tenant.pk):
        AdapterVersion.objects.filter(number__gte=79).update(state=VersionState.RETIRED)
        learned = {made[number].pk: number for number in (3, 5, 20, 40)}
        with CaptureQueriesContext(connection) as asked:
            (known,) = lineage.known_of(learned)
        selects = [one["sql"] for one in asked if one["sql"].startswith("SELECT")]
        with connection.cursor() as cursor:
            read = [len(cursor.execute(sql).fetchall()) for sql in selects]
    assert [(version.number, samples) for version, samples in known.learned] == [(3, 3), (5, 5), (20, 20)]
    assert (known.more_learned, [version.number for version in known.built_on]) == (1, [4, 6, 7])
    assert known.more_built_on == (60 - 2) - 4 - 3
    assert (known.clean, known.live_knows) == (made[78], True)
    assert max(read) <= 2 * lineage.NAMED
