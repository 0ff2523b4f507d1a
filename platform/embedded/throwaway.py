"""Postgres and Valkey for a while: fast, unsafe, in a folder that is removed afterwards.

`python -m embedded.throwaway -- COMMAND ...` runs a command with DATABASE_URL and REDIS_URL set and returns
its exit code. `python -m embedded.throwaway --folder F --port P --password W --until PID` keeps the two
servers until that process ends: the tests use it, so that a killed test run leaves nothing behind.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from embedded import processes
from embedded.database import Login, bootstrap
from embedded.home import free_port
from embedded.postgres import Postgres
from embedded.valkey import Valkey

READY = "ready"  # this file appears in the folder once both servers answer


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the two servers are, or will be: the addresses are known before they run."""

    folder: Path
    port: int
    password: str

    @classmethod
    def planned(cls) -> Servers:
        """Choose a fresh folder, a free port and a password."""
        folder = Path(tempfile.mkdtemp(prefix="attune-test-"))
        return cls(folder, free_port(), token_hex(16))

    @property
    def postgres(self) -> Postgres:
        """The Postgres server."""
        return Postgres(self.folder / "postgres", self.password, durable=False)

    @property
    def valkey(self) -> Valkey:
        """The Valkey server."""
        return Valkey(self.folder / "valkey", self.port, self.password, durable=False)

    def database_url(self, database: str = "postgres") -> str:
        """The URL of the superuser, for bootstrap and migrations."""
        return self.postgres.url(database=database)

    def login(self) -> Login:
        """The login that processes use."""
        return Login("attune_login", self.password)

    def redis_url(self, database: int = 0) -> str:
        """The URL of one of Valkey's 16 databases."""
        return self.valkey.url.rpartition("/")[0] + f"/{database}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run both servers; stop them and remove the folder at the end."""
        try:
            with (self.folder / "servers.log").open("ab") as log:
                postgres = self.postgres
                database = postgres.start(output=log)
                cache = self.valkey.start(output=log)
                try:
                    yield
                finally:
                    processes.end(cache)
                    postgres.stop(database)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def run_with_servers(command: Sequence[str]) -> int:
    """Run a command with fresh servers, a bootstrapped database `attune`, and the URLs in its environment."""
    servers = Servers.planned()
    with servers.running():
        url = bootstrap(servers.database_url("attune"), login=servers.login())
        env = os.environ | {
            "DATABASE_URL": url,
            "DATABASE_OWNER_URL": servers.database_url("attune"),
            "REDIS_URL": servers.redis_url(),
        }
        child = subprocess.Popen(list(command), env=env)
        # Ctrl-C reaches the command by the terminal, SIGTERM through us; either way the servers go last
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        return child.wait()


def keep_until(servers: Servers, pid: int) -> None:
    """Run the servers until process `pid` ends, or this one is told to stop."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    stop, stopped = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(stopped, b"x"))
    with servers.running():
        (servers.folder / READY).touch()
        with suppress(InterruptedError):
            select.select([watched, stop], [], [])


def main() -> int:
    """Parse the command line and do one of the two."""
    parser = argparse.ArgumentParser(prog="python -m embedded.throwaway", description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--password")
    parser.add_argument("--until", type=int, metavar="PID")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    processes.adopt_orphans()
    if given.until is not None:
        keep_until(Servers(given.folder, given.port, given.password), given.until)
        return 0
    if not given.command:
        parser.error("name a command after --")
    return run_with_servers(given.command)


if __name__ == "__main__":
    sys.exit(main())
