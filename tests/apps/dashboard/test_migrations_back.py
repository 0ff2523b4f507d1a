"""Migrations whose way back is SQL of ours are gone back and forth on a database with rows:
it is the same one afterwards."""

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dj_database_url
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from apps.conversations.models import Turn
from apps.dashboard.models import TurnRollup
from apps.dashboard.rollups.filling import sum_up_due
from apps.keys.services import authenticate, create_key
from embedded.database import bootstrap
from kernel.roles import OWNER_ROLE
from kernel.tenancy import system_scope, tenant_scope
from tests import services
from tests.apps.console.rows import Rows, fill

BACK = (("dashboard", "0001"), ("conversations", "0013"))
# what Postgres says of everything in it, by name or in words
_CATALOGUE = (
    """SELECT table_name, column_name, data_type, is_nullable, column_default
         FROM information_schema.columns WHERE table_schema = 'public'""",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
         FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    """SELECT pg_get_functiondef(oid), proacl::text, proowner::regrole::text
         FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'""",
    "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies",
    """SELECT relname, relacl::text, relrowsecurity, relowner::regrole::text
         FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v')""",
)


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[str]:
    """Return the superuser's URL of a database of this test's own."""
    del transactional_db
    servers, name = services.ensure_servers(), f"{services.database_name()}_back"
    with psycopg.connect(servers.database_url(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} TEMPLATE {services.TEMPLATE}")
    url = servers.database_url(name)
    bootstrap(url, login=servers.login())
    yield url
    with psycopg.connect(servers.database_url(), autocommit=True) as owner:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def connected(url: str) -> Iterator[None]:
    """Let this thread's connection be to another database."""
    usual = connection.settings_dict
    connection.close()
    found = dj_database_url.parse(url)
    connection.settings_dict = {**usual, **{name: found[name] for name in ("NAME", "USER", "PASSWORD")}}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = usual


def catalogue(url: str) -> list[list[str]]:
    with psycopg.connect(url) as owner:
        return [sorted(map(str, owner.execute(one).fetchall())) for one in _CATALOGUE]


def migrate(url: str, *to: Sequence[str]) -> None:
    with override_settings(DATABASE_ROLE=OWNER_ROLE), connected(url):
        for target in to:
            call_command("migrate", *target, verbosity=0)


def summed_up(rows: Rows) -> tuple[int, int]:
    """Sum the turns up; return how many there are, and in how many stretches of half an hour."""
    sum_up_due(limit=1_000)
    with tenant_scope(rows.tenant.pk):
        return Turn.objects.count(), TurnRollup.objects.filter(minutes=30, of_policy=None).count()


def test_sums_and_the_index_by_version_go_and_come_back(elsewhere: str) -> None:
    with connected(elsewhere):
        acme: Any = fill("acme", turns=3)
        with system_scope("test rows"):
            TurnRollup.objects.all().delete()
            for number, turn in enumerate(Turn.objects.all()):
                when = timezone.now() - dt.timedelta(hours=40 + number)
                Turn.objects.filter(pk=turn.pk).update(created_at=when)
        assert summed_up(acme) == (3, 3)
    before = catalogue(elsewhere)
    migrate(elsewhere, *BACK)
    assert "turn_by_version" not in str(catalogue(elsewhere))
    assert "rollup" not in str(catalogue(elsewhere))
    with connected(elsewhere), tenant_scope(acme.tenant.pk):
        assert Turn.objects.exclude(pk=acme.turn.pk).update(latency_ms=1.0) == 2  # no trigger is left behind
    migrate(elsewhere, ())
    assert catalogue(elsewhere) == before
    with connected(elsewhere):
        assert summed_up(acme) == (3, 3)
        with tenant_scope(acme.tenant.pk):
            Turn.objects.filter(pk=acme.turn.pk).update(latency_ms=1.0)
            assert TurnRollup.objects.filter(minutes=30, of_policy=None).count() == 2


def test_histograms_of_the_other_form_are_thrown_away_and_the_form_is_demanded(elsewhere: str) -> None:
    with connected(elsewhere):
        fill("acme")
    kept = "SELECT count(*) FROM dashboard_turnrollup"
    with psycopg.connect(elsewhere) as owner:
        assert owner.execute(kept).fetchone() == (1,)
    before = catalogue(elsewhere)
    migrate(elsewhere, ("dashboard", "0002"))
    with psycopg.connect(elsewhere) as owner:
        assert owner.execute(kept).fetchone() == (0,)
        assert "rollup_counts_by_bucket" not in str(catalogue(elsewhere))
    migrate(elsewhere, ())
    assert catalogue(elsewhere) == before
    with psycopg.connect(elsewhere) as owner:
        assert owner.execute(kept).fetchone() == (0,)


def test_sums_by_policy_wait_for_who_writes_a_turn_and_stand_in_nobodys_way(elsewhere: str) -> None:
    """The migration asks for the turns' table first: the writer goes on to its sum, and both come to their end."""
    with connected(elsewhere):
        acme: Any = fill("acme")
    migrate(elsewhere, ("dashboard", "0003"))
    with psycopg.connect(elsewhere) as writer, ThreadPoolExecutor(1) as pool:
        mine = "UPDATE conversations_turn SET prompt_reason = prompt_reason WHERE id = %s"
        writer.execute(mine, [acme.turn.pk])
        migrating = pool.submit(_migrate_alone, elsewhere)
        with psycopg.connect(elsewhere, autocommit=True) as looks:
            while not looks.execute(
                "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'conversations_turn'::regclass"
            ).fetchone():
                assert not migrating.done()
                time.sleep(0.02)
        writer.execute("SET LOCAL lock_timeout = '5s'")
        writer.execute("DELETE FROM dashboard_turnrollup")
        writer.commit()
        migrating.result(timeout=60)
    with connected(elsewhere):
        assert "of_policy" in str(catalogue(elsewhere))


def _migrate_alone(url: str) -> None:
    """Migrate in a thread of its own, whose connection is its own too."""
    try:
        migrate(url, ())
    finally:
        connection.close()


def test_what_keys_may_goes_and_comes_back(elsewhere: str) -> None:
    """A key that is limited and reads would read everything before: it loses that on the way back."""
    with connected(elsewhere):
        acme: Any = fill("acme")
        for name, policies in (("limited", [acme.policy.pk]), ("whole", None)):
            _, secret = create_key(
                tenant=acme.tenant, user=acme.user, name=name, scopes=["chat", "read"], policies=policies
            )
    before = catalogue(elsewhere)
    migrate(elsewhere, ("keys", "0005"))
    assert not [one for one in ("attune_scopes_of", "attune_end_keys") if one in str(catalogue(elsewhere))]
    scopes = "SELECT name, scopes FROM keys_apikey ORDER BY name"
    with psycopg.connect(elsewhere) as owner:
        assert owner.execute(scopes).fetchall() == [
            ("a key", ["chat"]),
            ("limited", ["chat"]),
            ("whole", ["chat", "read"]),
        ]
    with connected(elsewhere):
        assert authenticate(f"Bearer {secret}").scopes == {"chat", "read"}  # by the look-up of before
    migrate(elsewhere, ())
    assert catalogue(elsewhere) == before
