"""One supervised process: what it is (`Service`) and how it is doing (`Unit`)."""

from __future__ import annotations

import enum
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM, Signals

from embedded import logs, processes
from embedded.identity import Identity

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
STEADY_S = 30.0  # up for this long, and the next restart is immediate again
CHECK_EVERY_S = 5.0
UNHEALTHY_S = 60.0  # alive but without an answer for this long, and asked often enough: restarted
UNANSWERED = 8  # checks in a row: a machine that stood still for a minute says nothing of the process


def always() -> bool:
    """Count a process as ready as soon as it runs."""
    return True


@dataclass(frozen=True, slots=True)
class Service:
    """How to run one process.

    `command` is asked again at each start, after `prepare`. `after`: names of what must be ready (or done)
    before the first start. `once`: it is expected to end with 0 (a migration, say). `ready` is asked until it
    says yes, and then every few seconds.
    """

    name: str
    command: Callable[[], list[str]]
    log: Path
    env: Mapping[str, str]
    cwd: Path
    after: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    ready: Callable[[], bool] = always
    run_as: Callable[[], Identity | None] = field(default=lambda: None)
    once: bool = False
    start_within_s: float = 120.0
    stop_signal: Signals = SIGTERM
    stop_within_s: float = 8.0
    last: bool = False  # stopped after all others: they still write to it
    clean_up: Callable[[], None] | None = None  # after it was stopped for good
    said_at_start: str = "starting"
    said_when_ready: str = ""


class State(enum.Enum):
    """Where a unit is."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    DONE = "done"
    DELAYED = "delayed"


class Unit:
    """One service's process over time."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.state = State.WAITING
        self.process: subprocess.Popen[bytes] | None = None
        self.failures = 0  # starts in a row that did not last
        self.ever_ready = False
        self._since = 0.0
        self._healthy_at = 0.0
        self._check_at = 0.0
        self._again_at = 0.0
        self._unanswered = 0  # checks in a row

    @property
    def name(self) -> str:
        """The service's name."""
        return self.service.name

    @property
    def satisfied(self) -> bool:
        """Whether those that come after this may start."""
        return self.ever_ready

    def start(self) -> None:
        """Start the process."""
        service = self.service
        if service.prepare is not None:
            service.prepare()
        with logs.open_log(service.log) as log:
            self.process = processes.spawn(
                service.command(), env=service.env, cwd=service.cwd, output=log, identity=service.run_as()
            )
        self.state = State.STARTING
        self._since = self._healthy_at = time.monotonic()

    def due(self) -> bool:
        """Return whether a delayed start may go ahead."""
        return self.state is State.DELAYED and time.monotonic() >= self._again_at

    def exited(self) -> int | None:
        """Collect the process if it has ended, with what it left in its group; returns its exit code."""
        if self.process is None or not processes.has_exited(self.process):
            return None
        code = processes.collect(self.process)
        self.process = None
        return code

    def finish(self) -> None:
        """Note that a run-once service is done."""
        self.state = State.DONE
        self.ever_ready = True

    def delay(self) -> float:
        """Plan the next start; returns the seconds until then."""
        self.failures = 0 if time.monotonic() - self._since > STEADY_S else self.failures + 1
        wait = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**self.failures)
        self.state = State.DELAYED
        self._again_at = time.monotonic() + wait
        return wait

    def check(self) -> bool:
        """Ask how a running process is doing, where it is time to;
        returns whether it has just become ready."""
        now = time.monotonic()
        if self.state is State.STARTING:
            if not self.service.once and self.service.ready():
                self.state = State.READY
                self.ever_ready = True
                self._healthy_at, self._check_at, self._unanswered = now, now + CHECK_EVERY_S, 0
                return True
        elif self.state is State.READY and now >= self._check_at:
            if self.service.ready():
                self._healthy_at, self._unanswered = time.monotonic(), 0
            else:
                self._unanswered += 1
            self._check_at = time.monotonic() + CHECK_EVERY_S
        return False

    def stuck(self) -> bool:
        """Return whether the process is alive and has not answered for too long."""
        if self.process is None or (self.service.once and self.state is State.STARTING):
            return False
        silent_s = time.monotonic() - self._healthy_at
        if self.state is State.STARTING:
            return silent_s > self.service.start_within_s
        return silent_s > UNHEALTHY_S and self._unanswered >= UNANSWERED

    def seconds(self) -> float:
        """Return the seconds since the last start."""
        return time.monotonic() - self._since
