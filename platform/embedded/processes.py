"""Start processes that cannot outlive their parent, and end whole trees of them.

Three things of the kernel do the work: each service is the leader of a session of its own (one signal reaches
its group), it is killed when the supervisor dies (parent death signal), and what a dead service leaves behind
becomes the supervisor's child (child subreaper), where it is found and ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from embedded.identity import Identity

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: IO[bytes] | int | None = None,
    identity: Identity | None = None,
    own_session: bool = True,
    death_signal: signal.Signals = signal.SIGKILL,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program that receives `death_signal` when this process dies. Call from the main thread only.

    (The kernel ties the death signal to the thread that forked.) `output` takes both stdout and stderr.
    """
    return subprocess.Popen(
        [str(part) for part in argv],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=own_session,
        pass_fds=tuple(pass_fds),
        # safe: the callers are single-threaded, and nothing between fork and exec takes a lock
        preexec_fn=_last_steps(os.getpid(), identity, death_signal),  # noqa: PLW1509
    )


def _last_steps(parent: int, identity: Identity | None, death_signal: signal.Signals) -> Callable[[], None]:
    def run() -> None:
        if identity is not None:
            identity.assume()
        # after the change of user, which would clear it
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return run


def has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a child has ended, without collecting it:
    its process group keeps its number until then."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def collect(process: subprocess.Popen[bytes]) -> int:
    """End what is left in the group of an exited session leader, then collect it; returns its exit code."""
    if process.returncode is None:
        kill_group(process.pid)
    return process.wait()


def end(
    process: subprocess.Popen[bytes], *, number: signal.Signals = signal.SIGTERM, within_s: float = 10.0
) -> int:
    """Ask a session leader to end, kill it and its group where it is late; returns its exit code."""
    process.send_signal(number)
    until = time.monotonic() + within_s
    while not has_exited(process) and time.monotonic() < until:
        time.sleep(0.02)
    return collect(process)


def kill_group(leader: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal the whole process group of `leader`; a group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def children(of: int) -> list[int]:
    """Return the direct children of a process."""
    return _family().get(of, [])


def descendants(of: int) -> list[int]:
    """Return all processes below a process, parents before children."""
    family = _family()
    found: list[int] = []
    level = family.get(of, [])
    while level:
        found += level
        level = [grandchild for child in level for grandchild in family.get(child, [])]
    return found


def _family() -> dict[int, list[int]]:
    """Map each process to its direct children, from one pass over /proc."""
    family: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hundreds of names, twice a second
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # the name in parentheses may itself hold spaces and parentheses
                fields = Path("/proc", entry, "stat").read_text(errors="replace").rpartition(")")[2].split()
                family.setdefault(int(fields[1]), []).append(int(entry))
    return family


def end_orphans(keep: Callable[[int], bool]) -> int:
    """Kill and collect this process's children for which `keep` is false; returns how many."""
    ended = 0
    for pid in children(os.getpid()):
        if not keep(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            ended += 1
    return ended


def end_all(within_s: float) -> None:
    """Kill everything below this process until nothing is left or the time is over."""
    end = time.monotonic() + within_s
    while (left := descendants(os.getpid())) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children(os.getpid()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)


def group_of(pid: int) -> int:
    """Return a process's group, 0 where it is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0
