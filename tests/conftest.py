"""Fixtures that every folder of tests may use. The servers come from `tests/services.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest
import redis
from django.db import connection, connections
from pytest_django import DjangoDbBlocker

from tests import services
from tests.engines import Engines


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Replace pytest-django's: the database exists, is migrated by the owner,
    and tests run as the application."""
    services.ensure_database()
    with pytest.MonkeyPatch.context() as patched:
        # only the owner may truncate, which is how a transactional test is cleaned up
        patched.setattr(type(connection.ops), "execute_sql_flush", _flush_as_owner)
        yield
    with django_db_blocker.unblock():
        connections.close_all()


def _flush_as_owner(operations: object, sql_list: list[str]) -> None:
    del operations
    with psycopg.connect(services.owner_url(), options="-c lock_timeout=10s") as owner:
        for statement in sql_list:
            owner.execute(statement.encode())


@pytest.fixture(scope="session")
def _valkey_server() -> str:
    services.ensure_servers()
    return os.environ["REDIS_URL"]


@pytest.fixture
def valkey(_valkey_server: str) -> Iterator[redis.Redis]:
    """Return a client of this worker's own, empty Valkey database (the one in `settings.REDIS_URL`)."""
    with redis.Redis.from_url(_valkey_server) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def owner_connection(django_db_setup: None) -> Iterator[psycopg.Connection]:
    """Return an autocommit connection of a superuser: for looking behind row-level security."""
    with psycopg.connect(services.owner_url(), autocommit=True) as owner:
        yield owner


@pytest.fixture(scope="session")
def engine_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Start real SGLang servers: `engine_process(model_directory, dtype="float32")` returns a ready `Engine`.

    A server is shared by all who ask for the same thing; mark such tests `xdist_group("engine")`. About 25 s
    each.
    """
    engines = Engines(tmp_path_factory.mktemp("engines"))
    yield engines
    engines.stop()
