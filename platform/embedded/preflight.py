"""What must be true before anything is started; each refusal is one line that says how to mend it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from embedded.errors import CannotStart

OLDEST_GLIBC = (2, 34)  # SGLang's wheel is built against it
ROOM_FOR_MODELS = 2 * 1024**3  # bytes: both precisions, and one of them twice while it is written
ROOM_TO_RUN = 512 * 1024**2  # bytes: the database's journal, logs, a few adapters
MEMORY = 3 * 1024**3  # bytes: engine, trainer and the Python processes with the small model


def check_machine() -> None:
    """Refuse a machine that the pinned packages do not run on.
    (Python's version was checked when .venv was made.)"""
    library, version = platform.libc_ver()
    if library == "glibc" and tuple(int(part) for part in version.split(".")[:2]) < OLDEST_GLIBC:
        raise CannotStart(
            f"glibc {version} is too old for SGLang's wheel: use a system with 2.34 or newer (Debian 12)"
        )


def check_programs(*, gpu: bool) -> None:
    """Refuse where a program is missing that the engine calls."""
    if not gpu and shutil.which("lscpu") is None:
        raise CannotStart(
            "lscpu is missing, which SGLang asks for the processor: install util-linux, or set ENGINE_URLS"
        )
    if gpu and not (shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")):
        raise CannotStart(
            "a C compiler is missing, which Triton calls for its GPU kernels: install gcc (Debian: apt-get install "
            "gcc libc6-dev), or set ENGINE_URLS"
        )


def check_room(home: Path, *, models_there: bool) -> None:
    """Refuse to start on a disk that would run full."""
    needed = ROOM_TO_RUN if models_there else ROOM_FOR_MODELS + ROOM_TO_RUN
    free = shutil.disk_usage(home).free
    if free < needed:
        raise CannotStart(
            f"only {free / 1024**3:.1f} GB are free under {home}, {needed / 1024**3:.1f} GB are needed: make room, "
            "or set ATTUNE_HOME to another disk"
        )


def check_ports(ports: Mapping[str, int]) -> None:
    """Refuse a port that somebody else listens on. `ports` maps the variable that sets a port to the port."""
    for variable, port in ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise CannotStart(
                    f"port {port} cannot be used ({error.strerror}): stop what listens on it, or set {variable} "
                    "to another port"
                ) from None


def lacking_memory() -> str:
    """Return a warning where the machine has less memory than the small model wants, else an empty string."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        ""
        if total >= MEMORY
        else f"this machine has {total / 1024**3:.1f} GB of memory; 3 GB or more are better"
    )


def port_from(variable: str, default: int) -> int:
    """Return the port that an environment variable names."""
    raw = os.environ.get(variable) or str(default)
    if not raw.isdigit() or not 0 < int(raw) < 65536:
        raise CannotStart(f"{variable}={raw} is not a port: give a number from 1 to 65535")
    return int(raw)
