"""Lines for the person who waits: seconds since the start, which part, what."""

from __future__ import annotations

import contextlib
import sys
import time


class Progress:
    """Prints one line per event; a terminal that is gone stops nothing."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, part: str, what: str) -> None:
        """Print one line."""
        self.write(f"{time.monotonic() - self._began:7.1f} s  {part:<14} {what}")

    def write(self, text: str) -> None:
        """Print text as it is."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
