"""What dies is started again, what it leaves behind is ended, and stopping leaves nothing."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embedded import processes
from embedded.errors import CannotStart
from embedded.progress import Progress
from embedded.service import Service
from embedded.signs import LogLine
from embedded.supervisor import Supervisor

# a parent that says it is ready, with a child in a session of its own: only adoption finds that one
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("ready", child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def family(tmp_path: Path) -> Service:
    log = tmp_path / "log" / "family.log"
    line = LogLine(log, b"ready")
    return Service(
        name="family",
        command=lambda: [sys.executable, "-c", FAMILY],
        log=log,
        env=dict(os.environ),
        cwd=tmp_path,
        prepare=line.forget,
        ready=line.ready,
    )


def in_a_process_of_its_own(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a child: a supervisor ends whatever lives below its process,
    so it must not be pytest's."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                processes.adopt_orphans()
                test(**fixtures)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                processes.end_all(within_s=5.0)
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "see the traceback on stderr"

    return run


def supervise(*services: Service) -> Supervisor:
    return Supervisor(services, Progress())


def _until(holds: Callable[[], bool], within_s: float = 10.0) -> Callable[[], bool]:
    end = time.monotonic() + within_s

    def check() -> bool:
        assert time.monotonic() < end, "it did not happen in time"
        return holds()

    return check


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _child_of(service: Service) -> int:
    return int(service.log.read_text().split()[-1])


@in_a_process_of_its_own
def test_a_killed_service_is_started_again_and_its_child_is_ended(family: Service) -> None:
    supervisor = supervise(family)
    assert supervisor.run(until=_until(supervisor.all_ready))
    first, child = supervisor.pid("family"), _child_of(family)
    assert first is not None
    assert _alive(child)

    os.kill(first, signal.SIGKILL)

    supervisor.run(
        until=_until(lambda: supervisor.pid("family") not in (None, first) and supervisor.all_ready())
    )
    supervisor.run(until=_until(lambda: not _alive(child)))
    assert _alive(_child_of(family))
    assert _child_of(family) != child


@in_a_process_of_its_own
def test_stop_leaves_nothing_even_of_what_ignores_the_signal(tmp_path: Path, family: Service) -> None:
    log = tmp_path / "log" / "deaf.log"
    line = LogLine(log, b"deaf")
    deaf = Service(
        name="deaf",
        command=lambda: [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
        ],
        log=log,
        env=dict(os.environ),
        cwd=tmp_path,
        prepare=line.forget,
        ready=line.ready,
        stop_within_s=0.5,
    )
    supervisor = supervise(family, deaf)
    assert supervisor.run(until=_until(supervisor.all_ready))
    left = [supervisor.pid("family"), supervisor.pid("deaf"), _child_of(family)]

    began = time.monotonic()
    supervisor.stop(within_s=10.0)

    assert time.monotonic() - began < 5.0
    assert [pid for pid in left if pid is not None and _alive(pid)] == []


@in_a_process_of_its_own
def test_a_service_that_never_starts_ends_the_start_with_its_last_words(tmp_path: Path) -> None:
    broken = Service(
        name="broken",
        command=lambda: [sys.executable, "-c", "raise SystemExit('the reason')"],
        log=tmp_path / "log" / "broken.log",
        env=dict(os.environ),
        cwd=tmp_path,
        ready=lambda: False,
        once=True,
    )
    supervisor = supervise(broken)
    with pytest.raises(CannotStart, match=r"broken ended with code 1(.|\n)*the reason"):
        supervisor.run(until=_until(supervisor.all_ready))


@in_a_process_of_its_own
def test_order_is_kept(tmp_path: Path, family: Service) -> None:
    first = Service(
        name="first",
        command=lambda: [sys.executable, "-c", "import time; time.sleep(0.5); print('first done')"],
        log=tmp_path / "log" / "first.log",
        env=dict(os.environ),
        cwd=tmp_path,
        once=True,
    )
    second = replace(family, after=("first",))
    supervisor = supervise(second, first)
    supervisor.run(until=_until(lambda: supervisor.pid("first") is not None))
    assert supervisor.pid("family") is None
    supervisor.run(until=_until(supervisor.all_ready))
    assert first.log.read_text() == "first done\n"


def test_a_process_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    """`kill -9` of a supervisor: the kernel ends what it had started."""
    script = (
        "import sys, time; from embedded import processes\n"
        "child = processes.spawn([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert _alive(child)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    end = time.monotonic() + 5.0
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _alive(child)
