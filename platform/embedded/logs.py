"""Log files with an upper bound.

The writing process keeps its descriptor: the file is copied aside and cut.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO

LARGEST = 20 * 1024 * 1024  # bytes; one older part of the same size is kept


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "ab")


def bound(path: Path, *, largest: int = LARGEST) -> None:
    """Move a log's content to `NAME.1` once it is over the bound.

    Lines written at that very moment may be lost.
    """
    try:
        if path.stat().st_size <= largest:
            return
        older = path.with_name(path.name + ".1")
        shutil.copy2(path, older)
        os.truncate(path, 0)  # the writer appends, so it goes on at the new end
    except FileNotFoundError:
        return


def tail(path: Path, lines: int = 8) -> list[str]:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []
