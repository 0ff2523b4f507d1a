"""Pytest plugin: Postgres and Valkey for the tests, started when the first test needs them.

Their addresses are chosen before Django reads its settings. The servers live in a process of their own that
ends with the test run, however that ends; under xdist all workers share them and each has a database of its
own, copied from one that was migrated once.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from embedded.database import bootstrap, with_user
from embedded.throwaway import READY, Servers

PLAN = "ATTUNE_TEST_SERVERS"  # how a worker learns the addresses from the run that started it
TEMPLATE = "attune_template"

_keepers: list[
    subprocess.Popen[bytes]
] = []  # referenced until the interpreter ends: they outlive no test run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Put the addresses into the environment; this is the first hook, before any settings are read."""
    del parser
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        servers = Servers.planned()
        os.environ[PLAN] = json.dumps([str(servers.folder), servers.port, servers.password, os.getpid()])
    servers, _ = planned()
    os.environ["DATABASE_URL"] = login_url(servers)
    os.environ["REDIS_URL"] = servers.redis_url(worker_number())
    os.environ["ATTUNE_HOME"] = str(servers.folder / "home" / str(worker_number()))


def pytest_unconfigure() -> None:
    """Remove the folder where no server was ever started (else the servers' keeper does)."""
    servers, owner = planned()
    if owner == os.getpid() and not (servers.folder / "keeper.lock").exists():
        shutil.rmtree(servers.folder, ignore_errors=True)


def planned() -> tuple[Servers, int]:
    """Return this run's servers and the process they live for."""
    folder, port, password, owner = json.loads(os.environ[PLAN])
    return Servers(Path(folder), port, password), owner


def worker_number() -> int:
    """Return 0 without xdist or for its first worker, then 1 and so on."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def database_name() -> str:
    """Return the name of this worker's own database."""
    return f"attune_{worker_number()}"


def login_url(servers: Servers, database: str | None = None) -> str:
    """Return the URL that processes use: a login that can become the application's roles and nothing else."""
    return with_user(servers.database_url(database or database_name()), servers.login())


def owner_url() -> str:
    """Return the URL that may change this worker's tables."""
    return planned()[0].database_url(database_name())


@contextmanager
def _locked(name: str) -> Iterator[None]:
    servers, _ = planned()
    with (servers.folder / name).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure_servers(within_s: float = 60.0) -> Servers:
    """Start the servers if no worker did so yet; returns them running."""
    servers, owner = planned()
    with _locked("keeper.lock"):
        if (servers.folder / READY).exists():
            return servers
        keeper = subprocess.Popen(
            [
                *(sys.executable, "-m", "embedded.throwaway", "--folder", str(servers.folder)),
                *("--port", str(servers.port), "--password", servers.password, "--until", str(owner)),
            ],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        _keepers.append(keeper)
        end = time.monotonic() + within_s
        while not (servers.folder / READY).exists():
            if keeper.poll() is not None or time.monotonic() > end:
                log = servers.folder / "servers.log"
                raise RuntimeError(f"no test servers: {log.read_text() if log.exists() else 'see above'}")
            time.sleep(0.05)
    return servers


def ensure_database() -> None:
    """Give this worker its database, copied from the migrated template that the first worker makes."""
    servers = ensure_servers()
    with _locked("template.lock"):
        made = servers.folder / "template"
        if not made.exists():
            template = servers.database_url(TEMPLATE)
            bootstrap(template, login=servers.login())
            _migrate(template)
            made.touch()
        with psycopg.connect(servers.database_url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database_name()} TEMPLATE {TEMPLATE}")
    # rights on a database are not part of what a template hands on
    bootstrap(servers.database_url(database_name()), login=servers.login())


def _migrate(url: str) -> None:
    env = os.environ | {"DATABASE_URL": url, "DATABASE_ROLE": "attune_owner"}
    manage = Path(__file__).resolve().parents[1] / "manage.py"
    subprocess.run([sys.executable, str(manage), "migrate", "--verbosity", "0"], env=env, check=True)
