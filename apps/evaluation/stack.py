"""Find a running `make up`, or start one for as long as a command takes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STOPS_WITHIN_S = 30.0
STARTS_WITHIN_S = 1800.0


class StackFailed(Exception):
    """No platform could be reached or started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running platform: what a person was given, and the environment its processes run in."""

    api_base: str
    api_key: str
    tenant: str
    environment: dict[str, str]
    started_here: bool

    def to_json(self) -> str:
        """Return everything but the environment, which is handed on as such."""
        return json.dumps(
            {
                "api_base": self.api_base,
                "api_key": self.api_key,
                "tenant": self.tenant,
                "started_here": self.started_here,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Stack":
        """Read what `to_json` wrote."""
        return cls(**json.loads(text), environment={})


@contextmanager
def running_stack(
    home: Path, repository: Path, *, log_name: str, say: Callable[[str], None]
) -> Iterator[Stack]:
    """Yield the platform that runs on `home`.

    Where none does, one is started, with its output in a log of that name, and stopped again afterwards.
    """
    if _answers(home):
        yield _read(home, started_here=False)
        return
    say("nothing runs here yet: starting the platform (the first start installs and converts, minutes)")
    log = home / "log" / log_name
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        # its own process group, so that Ctrl-C reaches it only after the command has let go of it
        process = subprocess.Popen(
            [sys.executable, "-m", "embedded.up"],
            cwd=repository,
            # without what these settings took over from the platform that ran here
            # before: its servers are gone
            env={**_given(), "PYTHONPATH": f"{repository / 'platform'}{os.pathsep}{repository}"},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _await_ready(process, home, log, say)
        yield _read(home, started_here=True)
    finally:
        say("stopping the platform again")
        _stop(process)


def _given() -> dict[str, str]:
    """Return this process's variables without those that its settings adopted: what a person gave."""
    adopted = {"ATTUNE_ADOPTED", *os.environ.get("ATTUNE_ADOPTED", "").split()}
    return {name: value for name, value in os.environ.items() if name not in adopted}


def _await_ready(process: subprocess.Popen[bytes], home: Path, log: Path, say: Callable[[str], None]) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    last = ""
    ready = False  # the API answers long before the engine does
    with log.open(encoding="utf-8", errors="replace") as lines:
        while time.monotonic() < until:
            for line in lines:
                last = line.strip() or last
                ready = ready or line.strip() == "Ready"
                say(line.rstrip())
            if process.poll() is not None:
                raise StackFailed(
                    f"the platform did not start: {last or f'exit status {process.returncode}'}"
                )
            if ready and _answers(home):
                return
            time.sleep(0.5)
    raise StackFailed(f"the platform was not ready within {STARTS_WITHIN_S:.0f} s: {last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers(home: Path) -> bool:
    """Whether the API of this home answers with this home's key."""
    try:
        stack = _read(home, started_here=False)
        request = urllib.request.Request(  # noqa: S310
            f"{stack.api_base}/models", headers={"Authorization": f"Bearer {stack.api_key}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (StackFailed, OSError, urllib.error.URLError, ValueError):
        return False


def _read(home: Path, *, started_here: bool) -> Stack:
    try:
        given = json.loads((home / "first-run.json").read_text(encoding="utf-8"))
        environment = json.loads((home / "environment.json").read_text(encoding="utf-8"))
        return Stack(
            api_base=str(given["api_base"]).rstrip("/"),
            api_key=str(given["api_key"]),
            tenant=str(given["tenant"]),
            environment={str(name): str(value) for name, value in environment.items()},
            started_here=started_here,
        )
    except FileNotFoundError as error:
        raise StackFailed(f"{error.filename} is missing: start the platform with `make up`") from error
    except (KeyError, ValueError) as error:
        raise StackFailed(f"{home / 'first-run.json'} cannot be read: {error}") from error
