"""`make up`: the whole platform on this machine, from one command, until Ctrl-C.

Two processes: the keeper (this one) holds the home and starts the supervisor, which starts everything else.
If the supervisor is killed, the keeper ends what it left behind and starts it again; if the keeper is killed,
the supervisor is told by the kernel and stops everything.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

from embedded import first_run, model, plan, preflight, processes
from embedded.engine import answers, has_nvidia_gpu
from embedded.errors import CannotStart
from embedded.home import REPOSITORY, Home
from embedded.progress import Progress
from embedded.supervisor import Supervisor

STOP_WITHIN_S = 16  # the supervisor's part of the promised 20 s
KILL_AFTER_S = 19  # the keeper's patience with a supervisor that was asked to stop
IMPATIENCE_S = 2.0  # a Ctrl-C this long after the first kills instead of waiting
SUPERVISOR_RESTARTS = 5


class Keeper:
    """Runs the supervisor, again if it is killed, until it ends by itself or a stop is asked for."""

    def __init__(self, home: Home, lock: int, progress: Progress) -> None:
        self._home = home
        self._lock = lock
        self._progress = progress
        self._child: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._asked_at = 0.0

    def run(self) -> int:
        """Return the exit code of `make up`."""
        processes.adopt_orphans()
        _on_stop_signals(self._stop)
        signal.signal(signal.SIGALRM, self._give_up)
        for attempt in range(SUPERVISOR_RESTARTS + 1):
            code = self._once()
            processes.end_all(within_s=3.0)
            if code >= 0 or self._asked:
                return max(code, 0)
            if attempt < SUPERVISOR_RESTARTS:
                self._progress.say("supervisor", f"was killed by signal {-code}; starting everything again")
        self._progress.say("supervisor", "was killed too often")
        return 1

    def _once(self) -> int:
        self._child = processes.spawn(
            [sys.executable, "-m", "embedded.up", "--supervise"],
            env={**os.environ, "ATTUNE_HOME": str(self._home.path)},
            cwd=REPOSITORY,
            own_session=False,
            death_signal=signal.SIGTERM,
            pass_fds=[self._lock],
        )
        if self._asked:  # it came while there was nobody to tell
            self._child.terminate()
        return self._child.wait()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        first = not self._asked
        if first:
            self._asked, self._asked_at = True, time.monotonic()
            signal.alarm(KILL_AFTER_S)
        # one request may arrive more than once (by the terminal and by make):
        # only a later Ctrl-C is impatience
        impatient = number == signal.SIGINT and time.monotonic() - self._asked_at > IMPATIENCE_S
        if self._child is not None and self._child.returncode is None and (first or impatient):
            self._child.send_signal(signal.SIGKILL if impatient else signal.SIGTERM)

    def _give_up(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._child is not None and self._child.returncode is None:
            self._child.kill()


def supervise(home: Home, progress: Progress) -> int:
    """Start everything, say when it is ready, and look after it until a stop is asked for."""
    processes.adopt_orphans()
    chosen = plan.make(home)
    supervisor = Supervisor(chosen.services, progress, record=home.processes)
    _on_stop_signals(lambda number, frame: supervisor.ask_to_stop())
    code = 0
    try:
        if supervisor.run(until=supervisor.all_ready):
            progress.write(welcome(home, chosen))
            supervisor.run()
    except CannotStart as error:
        progress.write(f"\n{error}")
        code = 1
    began = time.monotonic()
    progress.say("everything", "stopping")
    supervisor.stop(within_s=STOP_WITHIN_S)
    progress.say("everything", f"stopped after {time.monotonic() - began:.1f} s")
    return code


def welcome(home: Home, chosen: plan.Plan) -> str:
    """Return what a person needs now."""
    told = first_run.read(home, web_url=chosen.web_url, api_base=chosen.api_base)
    key = told["api_key"]
    known = answers(f"{told['api_base']}/models", key=key, timeout_s=10.0)
    doubt = (
        ""
        if known
        else f"\n  The gateway does not accept this key: remove {home.first_run} and start again.\n"
    )
    body = '{"model": "default", "stream": true, "messages": [{"role": "user", "content": "How do I boil an egg?"}]}'
    return f"""
Ready

  web        {told["web_url"]}   (console: {told["web_url"]}/console/)
  login      {told["operator_email"]}   {told["operator_password"]}
  API        {told["api_base"]}
  key        {key}
  files      {home.path}   (logs in log/, this text in first-run.json)
{doubt}
  curl -N {told["api_base"]}/chat/completions \\
    -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\
    -d {shlex.quote(body)}

  Ctrl-C stops everything; `make up` resumes with everything still there.
"""


def _on_stop_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # under nohup a hang-up stays ignored
        if signal.getsignal(number) is not signal.SIG_IGN or number is not signal.SIGHUP:
            signal.signal(number, handler)


def main() -> int:
    """Check, hold the home, run."""
    parser = argparse.ArgumentParser(prog="python -m embedded.up", description="Run the whole platform here.")
    parser.add_argument("--supervise", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    progress = Progress()
    home = Home.from_environment()
    try:
        if given.supervise:
            return supervise(home, progress)
        preflight.check_machine()
        if "ENGINE_URLS" not in os.environ:
            preflight.check_programs(gpu=has_nvidia_gpu())
        home.prepare()
        lock = home.hold()
        preflight.check_room(home.path, models_there=model.is_converted(home) or "MODEL_PATH" in os.environ)
        preflight.check_ports(plan.ports())
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    if warning := preflight.lacking_memory():
        progress.say("machine", warning)
    return Keeper(home, lock, progress).run()


if __name__ == "__main__":
    sys.exit(main())
