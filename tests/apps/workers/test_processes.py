"""The real processes: relay, Celery workers and the trainer's child, on the test's Postgres and Valkey."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest
import redis
from django.conf import settings as django_settings
from django.db import transaction
from pytest_django import Settings

from apps.judging.services import ask_for_judgement
from apps.learning.models import RunState
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn, runs_of, states_of
from tests.apps.workers.trainers import FAKE
from tests.tenants import Somebody, add_somebody

WAIT_S = 90.0


class Processes:
    """Processes of this checkout, in sessions of their own; all are gone after the test."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._started: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{len(self._started)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=self._environment,
            stdout=log,
            stderr=log,
            cwd=django_settings.BASE_DIR,
            start_new_session=True,
        )
        self._started.append((process, log))
        return process

    def logs(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-3000:] for path in sorted(self._folder.glob("*.log"))
        )

    def stop(self) -> None:
        for process, log in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            log.close()


@pytest.fixture
def processes(
    tmp_path: Path, chat_model: Path, settings: Settings, valkey: redis.Redis
) -> Iterator[Processes]:
    control = tmp_path / "control.json"
    control.write_text('{"mode": "made"}')
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "PYTHONPATH": f"{django_settings.BASE_DIR}{os.pathsep}{django_settings.BASE_DIR / 'platform'}",
        "MODEL_PATH": str(chat_model),
        "ADAPTER_STORE": str(settings.ADAPTER_STORE),
        "TRAINING_BATCH": "3",
        "LEASE_S": "3",
        "FAKE_TRAINER": f"{FAKE}\n{control}",
    }
    started = Processes(tmp_path, environment)
    yield started
    started.stop()


def until(true: Callable[[], bool], processes: Processes) -> None:
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end, processes.logs()
        time.sleep(0.2)


def say_something_about(somebody: Somebody, count: int) -> None:
    for number in range(count):
        turn = add_turn(
            somebody,
            question=f"What is comet {number}?",
            next_state=[{"role": "user", "content": "Too long. One short sentence is plenty."}],
        )
        with tenant_scope(somebody.tenant.id), transaction.atomic():
            ask_for_judgement(turn_id=turn.id, tenant_id=turn.tenant_id)


@pytest.mark.django_db(transaction=True)
def test_from_a_next_state_to_a_committed_step_with_a_relay_and_a_trainer_killed_on_the_way(
    processes: Processes, tmp_path: Path
) -> None:
    somebody = add_somebody()
    worker = ("celery", "-A", "tests.apps.workers.fake_app", "worker", "--without-gossip", "--without-mingle")
    relays = [processes.start("workers.relay") for _ in range(2)]
    processes.start(*worker, "-Q", "judge", "-c", "4", "-n", "judge@test")
    processes.start(*worker, "-Q", "ops", "-c", "2", "-n", "ops@test")
    processes.start("celery", "-A", "workers.app", "beat", "--schedule", str(tmp_path / "beat"), "--pidfile=")
    (tmp_path / "control.json").write_text('{"mode": "hang"}')
    trainer = processes.start(*worker, "-Q", "train", "-c", "1", "-n", "train@test")

    say_something_about(somebody, 2)
    relays[0].kill()
    say_something_about(somebody, 1)
    until(lambda: [run.state for run in runs_of(somebody)] == [RunState.RUNNING], processes)
    seen = tmp_path / "control.seen"
    until(seen.exists, processes)
    assert states_of(somebody) == {"claimed": 3}

    # the worker dies without a word: its child goes with it,
    # its run waits again and another worker makes the step
    children = psutil.Process(trainer.pid).children(recursive=True)
    assert children
    trainer.kill()
    until(lambda: not any(_alive(child) for child in children), processes)
    (tmp_path / "control.json").write_text('{"mode": "made"}')
    second = processes.start(*worker, "-Q", "train", "-c", "1", "-n", "train@second")
    until(lambda: states_of(somebody) == {"consumed": 3}, processes)
    assert [(run.state, run.fence) for run in runs_of(somebody)] == [(RunState.SUCCEEDED, 2)]

    # told to stop, a worker and its child are gone soon
    second.send_signal(signal.SIGTERM)
    assert second.wait(20) == 0


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
