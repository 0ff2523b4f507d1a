"""`make up` under `kill -9`: every process comes back,
nothing acknowledged is lost, nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from embedded import processes
from embedded.home import REPOSITORY, Home, free_port
from tests.tiny_model import build_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("engine")]


class Platform:
    """A running `make up`, seen from outside."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.home = Home(folder / "a home")
        self.gateway = free_port()
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("DATABASE_", "REDIS_"))
            },
            "ATTUNE_HOME": str(self.home.path),
            "ATTUNE_GATEWAY_PORT": str(self.gateway),
            "ATTUNE_WEB_PORT": str(free_port()),
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            "MODEL_PATH": str(model),
            "CONTEXT_LENGTH": "512",
        }
        self.output = folder / "output"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, within_s: float = 400.0) -> None:
        """Start and wait for the line `Ready`."""
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "embedded.up"],
                env=self.env,
                cwd=REPOSITORY,
                stdout=output,
                stderr=output,
            )
        self.wait(lambda: self.said("\nReady\n"), within_s)

    def said(self, text: str, times: int = 1) -> bool:
        """Return whether it printed this, so often."""
        return self.output.read_text(errors="replace").count(text) >= times

    def wait(self, holds: Callable[[], bool], within_s: float = 400.0) -> None:
        """Wait for something; fails with what was printed."""
        end = time.monotonic() + within_s
        while not holds():
            assert self.process is not None
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < end, self.output.read_text()
            time.sleep(0.2)

    def numbers(self) -> dict[str, int]:
        """Return the process number of each service."""
        found: dict[str, int] = json.loads(self.home.processes.read_text())
        return found

    def chat(self) -> str | None:
        """Return the turn's id of one short chat, None where it was not answered."""
        told = json.loads(self.home.first_run.read_text())
        try:
            answer = httpx.post(
                f"{told['api_base']}/chat/completions",
                json={"model": "default", "max_tokens": 4, "messages": [{"role": "user", "content": "egg?"}]},
                headers={"Authorization": f"Bearer {told['api_key']}"},
                timeout=60,
            )
        except httpx.HTTPError:
            return None
        return answer.headers["X-Turn-Id"] if answer.status_code == 200 else None

    def turns(self) -> set[str]:
        """Return the ids of the turns in the database."""
        url = json.loads(self.home.environment.read_text())["DATABASE_URL"]
        with psycopg.connect(url, options="-c role=attune_system") as connection:
            return {str(row[0]) for row in connection.execute("SELECT id FROM conversations_turn")}


@pytest.fixture(scope="module")
def one_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("up")
    platform = Platform(folder, build_tiny_model(folder / "model"))
    try:
        platform.start()
        yield platform
    finally:
        if platform.process is not None and platform.process.poll() is None:
            platform.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                platform.process.wait(25)


@pytest.fixture
def platform_here(one_platform: Platform) -> Platform:
    """Return the platform at work: started anew where the test before ended it."""
    if one_platform.process is None or one_platform.process.poll() is not None:
        one_platform.start()
    return one_platform


SERVICES = [
    *(
        "postgres",
        "valkey",
        "gateway",
        "web",
        "worker-judge",
        "worker-ops",
        "worker-train",
        "beat",
        "relay",
        "engine",
    )
]


@pytest.mark.parametrize("name", SERVICES)
def test_a_killed_process_is_healed_and_no_acknowledged_turn_is_lost(
    platform_here: Platform, name: str
) -> None:
    platform = platform_here
    before = platform.numbers()
    acknowledged = {turn for turn in (platform.chat() for _ in range(3)) if turn}
    assert len(acknowledged) == 3

    os.kill(before[name], signal.SIGKILL)

    platform.wait(lambda: platform.numbers().get(name) not in (None, before[name]), 30.0)
    platform.wait(lambda: platform.chat() is not None)
    assert acknowledged <= platform.turns()
    after = platform.numbers()
    assert {other for other in before if after.get(other) != before[other]} == {name}


def test_the_engines_own_child_may_die_too(platform_here: Platform) -> None:
    platform = platform_here
    engine = platform.numbers()["engine"]
    scheduler = next(
        child
        for child in processes.descendants(engine)
        if b"scheduler" in Path(f"/proc/{child}/cmdline").read_bytes()
    )
    os.kill(scheduler, signal.SIGKILL)
    platform.wait(lambda: platform.numbers().get("engine") not in (None, engine), 60.0)
    platform.wait(lambda: platform.chat() is not None)


def test_a_killed_supervisor_is_started_again_with_everything_else(platform_here: Platform) -> None:
    platform = platform_here
    assert platform.process is not None
    before = set(processes.descendants(platform.process.pid))
    acknowledged = platform.chat()
    (supervisor,) = processes.children(platform.process.pid)

    os.kill(supervisor, signal.SIGKILL)

    platform.wait(lambda: platform.said("\nReady\n", times=2))
    assert not before & set(processes.descendants(platform.process.pid))
    assert platform.chat() is not None
    assert acknowledged in platform.turns()


def test_stop_takes_less_than_20_seconds_leaves_nothing_and_resumes(platform_here: Platform) -> None:
    platform = platform_here
    assert platform.process is not None
    acknowledged = platform.chat()
    told = platform.home.first_run.read_text()
    everything = processes.descendants(platform.process.pid)

    began = time.monotonic()
    platform.process.send_signal(signal.SIGTERM)
    assert platform.process.wait(20) == 0
    assert time.monotonic() - began < 20.0
    assert [pid for pid in everything if Path(f"/proc/{pid}").exists()] == []

    platform.start()
    assert platform.home.first_run.read_text() == told
    assert platform.chat() is not None
    assert acknowledged in platform.turns()


def test_kill_9_of_make_up_itself_leaves_nothing(platform_here: Platform) -> None:
    platform = platform_here
    assert platform.process is not None
    everything = processes.descendants(platform.process.pid)
    platform.process.kill()
    platform.process.wait()
    end = time.monotonic() + 25.0
    while left := [pid for pid in everything if _runs(pid)]:
        assert time.monotonic() < end, left
        time.sleep(0.2)


def _runs(pid: int) -> bool:
    """Return whether a process is there and no zombie (this test is its parent by now, and collects none)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
