"""Signs that a process is ready, where it does not answer requests:
a line in its log, or simply staying alive."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path


class LogLine:
    """Ready once the log holds a marker written since the last start."""

    def __init__(self, log: Path, marker: bytes) -> None:
        self._log = log
        self._marker = marker
        self._from = 0
        self._seen = False

    def forget(self) -> None:
        """Start over at the end of the log."""
        self._seen = False
        self._from = self._log.stat().st_size if self._log.exists() else 0

    def ready(self) -> bool:
        """Return whether the marker has come."""
        if not self._seen and self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._from if self._log.stat().st_size >= self._from else 0)
                self._seen = self._marker in file.read()
        return self._seen


class Lasting:
    """Ready once the process has lived for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = 0.0

    def forget(self) -> None:
        """Start over now."""
        self._since = time.monotonic()

    def ready(self) -> bool:
        """Return whether it has lived long enough."""
        return time.monotonic() - self._since >= self._seconds


def responds(url: str) -> Callable[[], bool]:
    """Return a sign that holds while a server answers `url`, be it with an error:
    starting it again mends none."""

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2.0):  # noqa: S310 - our own addresses
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    return ready
