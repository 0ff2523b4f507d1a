"""The parent's side of the trainer's long-lived child: start it, tell it what to do, end it.

torch never runs in a Celery worker: a step that crashes, hangs or eats all memory takes the child with it and
nothing else. The child holds only the frozen base, so it can be started again at any time.
"""

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, TypeVar

from django.conf import settings

from trainer.codec import Contract, ContractError
from trainer.contracts import ErrorLine, ProgressEvent, Ready, StepReport, StepRequest, StepsRequest
from workers.trainer_command import trainer_command, trainer_environment

logger = logging.getLogger("trainer")

C = TypeVar("C", bound=Contract)

START_S = 600.0  # until the base is in memory; the first start may read gigabytes
STOP_S = 3.0  # until a child that was told to end is killed
TICK_S = 0.25  # how often the parent looks up while it waits


class TrainerDied(Exception):
    """The child ended, hung or could not start; the step has no result and may be tried again."""


class StepStopped(Exception):
    """The step was ended because its caller no longer wants it (`reason` says why)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestRefused(Exception):
    """The child says that the request breaks its contract: trying it again is of no use."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the child's output; None: the output has ended."""

    text: str | None


class TrainerProcess:
    """One child, started when it is first needed. One step at a time; safe to stop from another thread."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._child: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[_Line] = queue.Queue()
        self._step = threading.Lock()
        self._ending = threading.Event()
        self.ready: Ready | None = None

    def step(
        self,
        request: StepRequest,
        *,
        deadline_s: float,
        keep_going: Callable[[ProgressEvent | None], str],
    ) -> StepReport:
        """Run one step in the child and return its report.

        `keep_going` is called about every `TICK_S` with the newest progress; once it answers with a reason
        the child is ended and StepStopped raised. Raises TrainerDied, RequestRefused.
        """
        with self._step:
            return self._run(request, [request.run_id], deadline_s, keep_going)[request.run_id]

    def steps(
        self,
        request: StepsRequest,
        *,
        deadline_s: float,
        keep_going: Callable[[ProgressEvent | None], str],
    ) -> dict[str, StepReport]:
        """Run several policies' steps in the child and return each one's report by its run
        id; otherwise as `step`."""
        with self._step:
            return self._run(request, [step.run_id for step in request.steps], deadline_s, keep_going)

    def end(self) -> None:
        """End the child, and any step under way, for good."""
        self._ending.set()
        if self._step.acquire(timeout=STOP_S):
            try:
                self._kill()
            finally:
                self._step.release()

    @property
    def pid(self) -> int | None:
        """The child's process id while it lives."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def _run(
        self,
        request: StepRequest | StepsRequest,
        run_ids: Sequence[str],
        deadline_s: float,
        keep_going: Callable[[ProgressEvent | None], str],
    ) -> dict[str, StepReport]:
        try:
            if self.pid is None:
                self._start()
            if self.ready is None:
                self._await_ready(keep_going)
            self._write(json.dumps(request.to_json()))
            return self._await_reports(
                {request.run_id, *run_ids}, len(run_ids), time.monotonic() + deadline_s, keep_going
            )
        except (TrainerDied, StepStopped):
            self._kill()
            raise

    def _start(self) -> None:
        self._kill()
        self._lines = queue.Queue()
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", "workers.leash", str(os.getpid()), "--", *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=self._environment,
                cwd=settings.BASE_DIR,
                start_new_session=True,
            )
        except OSError as error:
            raise TrainerDied(f"the trainer could not be started: {error}") from error
        self._child = child
        logger.info("trainer started as process %d", child.pid)
        for stream, take in ((child.stdout, self._take_line), (child.stderr, _log_line)):
            threading.Thread(
                target=_drain, args=(stream, take, self._lines), name=f"trainer-{child.pid}", daemon=True
            ).start()

    def _take_line(self, text: str, lines: "queue.Queue[_Line]") -> None:
        lines.put(_Line(text))

    def _await_ready(self, keep_going: Callable[[ProgressEvent | None], str]) -> None:
        message = self._next(time.monotonic() + START_S, keep_going, None)
        if message.get("kind") != "ready":
            raise TrainerDied(f"the trainer began with {message.get('kind')!r} instead of ready")
        self.ready = _read(Ready, message)

    def _await_reports(
        self,
        run_ids: Set[str],
        count: int,
        until: float,
        keep_going: Callable[[ProgressEvent | None], str],
    ) -> dict[str, StepReport]:
        reports: dict[str, StepReport] = {}
        progress: ProgressEvent | None = None
        while len(reports) < count:
            message = self._next(until, keep_going, progress)
            if message.get("run_id") not in run_ids:
                continue  # an answer to a step that this parent no longer waits for
            kind = message.get("kind")
            if kind == "progress":
                progress = _read(ProgressEvent, message)
            elif kind == "report":
                report = _read(StepReport, message)
                reports[report.run_id] = report
            elif kind == "error":
                error = _read(ErrorLine, message)
                if error.code == "bad_request":
                    raise RequestRefused(error.message)
                raise TrainerDied(error.message)
        return reports

    def _next(
        self,
        until: float,
        keep_going: Callable[[ProgressEvent | None], str],
        progress: ProgressEvent | None,
    ) -> dict[str, Any]:
        """Return the child's next message; meanwhile ask whether to go on."""
        while True:
            reason = "the worker stops" if self._ending.is_set() else keep_going(progress)
            if reason:
                raise StepStopped(reason)
            if time.monotonic() > until:
                raise TrainerDied("the trainer took too long")
            try:
                line = self._lines.get(timeout=TICK_S).text
            except queue.Empty:
                continue
            if line is None:
                raise TrainerDied(f"the trainer ended{self._exit_status()}")
            try:
                message = json.loads(line)
            except ValueError as error:
                raise TrainerDied(f"the trainer said what is not JSON: {line[:200]!r}") from error
            if not isinstance(message, dict):
                raise TrainerDied(f"the trainer said what is no message: {line[:200]!r}")
            return message

    def _write(self, line: str) -> None:
        """Write from a thread of its own: a child that does not read must not hold the parent for ever."""
        stdin = self._child.stdin if self._child is not None else None
        if stdin is None:
            raise TrainerDied("the trainer is gone")
        failure: list[Exception] = []

        def write() -> None:
            try:
                stdin.write(line + "\n")
                stdin.flush()
            except (OSError, ValueError) as error:
                failure.append(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(timeout=60.0)
        if writer.is_alive() or failure:
            raise TrainerDied(f"the trainer does not listen{self._exit_status()}")

    def _exit_status(self) -> str:
        if self._child is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f" with status {self._child.wait(timeout=2.0)}"
        return ""

    def _kill(self) -> None:
        """End the child and every process of its session."""
        child, self._child, self.ready = self._child, None, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            if child.stdin is not None:
                child.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10.0)


@cache
def trainer_process() -> TrainerProcess:
    """Return this worker process's trainer."""
    return TrainerProcess(trainer_command(), trainer_environment(os.environ))


def _drain(
    stream: IO[str] | None,
    take: Callable[[str, "queue.Queue[_Line]"], None],
    lines: "queue.Queue[_Line]",
) -> None:
    """Hand on a stream's lines until it ends; the end of the output is told once."""
    if stream is None:
        return
    with contextlib.suppress(ValueError), stream:
        for line in stream:
            take(line.rstrip("\n"), lines)
    if take is not _log_line:
        lines.put(_Line(None))


def _log_line(text: str, _lines: "queue.Queue[_Line]") -> None:
    logger.info("%s", text)


def _read(kind: type[C], message: Mapping[str, Any]) -> C:
    try:
        return kind.from_json(message)
    except ContractError as error:
        raise TrainerDied(f"the trainer broke its contract: {error}") from error
