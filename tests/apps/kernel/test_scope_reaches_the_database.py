"""No query runs under another scope than the caller's: after errors, rollbacks, and on reused connections."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.db.utils import DataError

from kernel.ids import uuid7
from kernel.postgres.base import DatabaseWrapper
from kernel.roles import APP_ROLE, SYSTEM_ROLE
from kernel.tenancy import system_scope, tenant_scope

A, B = uuid7(), uuid7()


def seen(through: DatabaseWrapper | None = None) -> tuple[str, str]:
    """Return the role and the tenant that a query runs under."""
    with (through or connection).cursor() as cursor:
        cursor.execute("SELECT current_user::text, current_setting('attune.tenant', true)")
        role, tenant = cursor.fetchone() or ("", "")
    return role, tenant or ""


@pytest.fixture
def fresh(db: None) -> Iterator[DatabaseWrapper]:
    """Return a connection with no test's transaction around it."""
    wrapper = DatabaseWrapper(connection.settings_dict, alias="default")
    yield wrapper
    wrapper.close()


@pytest.mark.django_db
def test_each_scope_is_applied() -> None:
    assert seen() == (APP_ROLE, "")
    with tenant_scope(A):
        assert seen() == (APP_ROLE, str(A))
        with system_scope("test"):
            assert seen() == (SYSTEM_ROLE, "")
        with tenant_scope(B):
            assert seen() == (APP_ROLE, str(B))
        assert seen() == (APP_ROLE, str(A))
    assert seen() == (APP_ROLE, "")


@pytest.mark.django_db
def test_after_a_rolled_back_savepoint() -> None:
    with tenant_scope(A):
        assert seen() == (APP_ROLE, str(A))
        with transaction.atomic(), system_scope("test"):
            assert seen() == (SYSTEM_ROLE, "")
            transaction.set_rollback(True)
        assert seen() == (APP_ROLE, str(A))
    assert seen() == (APP_ROLE, "")


@pytest.mark.django_db
def test_after_a_savepoint_that_began_before_the_scope() -> None:
    # the rollback takes the settings back to what they were under A, while the caller has moved on to B
    with tenant_scope(A):
        assert seen() == (APP_ROLE, str(A))
        point = transaction.savepoint()
        with tenant_scope(B):
            assert seen() == (APP_ROLE, str(B))
            transaction.savepoint_rollback(point)
            assert seen() == (APP_ROLE, str(B))
        assert seen() == (APP_ROLE, str(A))


@pytest.mark.django_db
def test_after_a_failed_statement() -> None:
    with tenant_scope(A):
        with pytest.raises(DataError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1/0")
        assert seen() == (APP_ROLE, str(A))


def test_after_a_rolled_back_transaction(fresh: DatabaseWrapper) -> None:
    with tenant_scope(A):
        assert seen(fresh) == (APP_ROLE, str(A))
    fresh.set_autocommit(False)
    with system_scope("test"):
        assert seen(fresh) == (SYSTEM_ROLE, "")
        fresh.rollback()
        assert seen(fresh) == (SYSTEM_ROLE, "")
    fresh.rollback()
    fresh.set_autocommit(True)
    assert seen(fresh) == (APP_ROLE, "")


def test_after_a_reconnect(fresh: DatabaseWrapper) -> None:
    with tenant_scope(A):
        assert seen(fresh) == (APP_ROLE, str(A))
        fresh.close()
        assert seen(fresh) == (APP_ROLE, str(A))


@pytest.mark.django_db
def test_a_pooled_connection_forgets_whom_it_served() -> None:
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1, "timeout": 10}}
    settings = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": 0}
    first = DatabaseWrapper(settings, alias="default")
    second = DatabaseWrapper(settings, alias="default")
    pid = "SELECT pg_backend_pid()"
    try:
        with tenant_scope(A), first.cursor() as cursor:
            assert seen(first) == (APP_ROLE, str(A))
            cursor.execute(pid)
            served_by = cursor.fetchone()
        first.close()
        with second.cursor() as cursor:
            cursor.execute(pid)
            assert cursor.fetchone() == served_by  # the same session of Postgres, now for somebody else
        assert seen(second) == (APP_ROLE, "")
        with tenant_scope(B):
            assert seen(second) == (APP_ROLE, str(B))
        second.close()
        with tenant_scope(A):
            assert seen(first) == (APP_ROLE, str(A))
    finally:
        first.close()
        second.close()
        first.close_pool()


def test_threads_do_not_share_a_scope(fresh: DatabaseWrapper) -> None:
    found: list[tuple[str, str]] = []

    def beside() -> None:
        wrapper = DatabaseWrapper(connection.settings_dict, alias="default")
        try:
            found.append(seen(wrapper))
        finally:
            wrapper.close()

    with tenant_scope(A):
        assert seen(fresh) == (APP_ROLE, str(A))
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
    assert found == [(APP_ROLE, "")]


def test_server_side_cursors_and_copies_are_scoped_too(fresh: DatabaseWrapper) -> None:
    with tenant_scope(A), fresh.chunked_cursor() as cursor:
        cursor.execute("SELECT current_user::text, current_setting('attune.tenant', true)")
        assert list(cursor) == [(APP_ROLE, str(A))]
