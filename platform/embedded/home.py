"""ATTUNE_HOME: where the embedded default keeps its state, who holds it, and its secrets."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import CannotStart

REPOSITORY = Path(__file__).resolve().parents[2]
SECRETS = (
    "postgres_password",
    "login_password",
    "valkey_password",
    "engine_api_key",
    "engine_admin_key",
    "secret_key",
)


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one home directory."""

    path: Path

    @classmethod
    def from_environment(cls) -> Home:
        """Return the home that ATTUNE_HOME names, or `var/` of this repository."""
        named = os.environ.get("ATTUNE_HOME")
        return cls((Path(named).expanduser() if named else REPOSITORY / "var").absolute())

    @property
    def postgres(self) -> Path:
        """Postgres data, socket and lock files."""
        return self.path / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's configuration and append-only file."""
        return self.path / "valkey"

    @property
    def models(self) -> Path:
        """Converted models."""
        return self.path / "models"

    @property
    def adapters(self) -> Path:
        """The adapter store."""
        return self.path / "adapters"

    @property
    def run(self) -> Path:
        """What only the running processes need: configuration files with secrets."""
        return self.path / "run"

    @property
    def first_run(self) -> Path:
        """What a person needs: addresses, login, key."""
        return self.path / "first-run.json"

    @property
    def environment(self) -> Path:
        """The variables that the running processes were started with, for commands started by hand."""
        return self.path / "environment.json"

    @property
    def processes(self) -> Path:
        """The process number of each service that runs now."""
        return self.run / "processes.json"

    def log(self, name: str) -> Path:
        """The log file of one process."""
        return self.path / "log" / f"{name}.log"

    def prepare(self) -> None:
        """Create the directories that several parts write to."""
        try:
            for folder in (self.path, self.path / "log", self.run, self.adapters, self.models):
                folder.mkdir(parents=True, exist_ok=True)
            self.run.chmod(0o700)
        except OSError as error:
            raise CannotStart(
                f"{self.path} cannot be used: {error.strerror}; set ATTUNE_HOME to another place"
            ) from None

    def hold(self) -> int:
        """Take the home for this process and those it hands the descriptor to; returns the descriptor."""
        lock = os.open(self.path / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            raise CannotStart(
                f"another `make up` (process {holder or '?'}) runs on {self.path}: "
                "stop it first, or set ATTUNE_HOME to another directory"
            ) from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock

    def secrets(self) -> dict[str, str]:
        """Return this home's secrets, made on first use and kept in a file that only its owner reads."""
        path = self.path / "secrets.json"
        known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        missing = [name for name in SECRETS if name not in known]
        if missing:
            # hexadecimal: a key that begins with a dash reads as an option
            known |= {name: secrets.token_hex(24) for name in missing}
            write_private(path, json.dumps(known, indent=2))
        return known


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its owner may read it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def free_port() -> int:
    """Return a TCP port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
