"""A process is started again for not answering, never for a machine that stood still."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import service
from embedded.service import Service, State, Unit


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(service, "time", made)
    return made


@pytest.fixture
def answers() -> list[bool]:
    return [True]


@pytest.fixture
def unit(tmp_path: Path, clock: Clock, answers: list[bool]) -> Iterator[Unit]:
    made = Unit(
        Service(
            name="slow",
            command=list,
            log=tmp_path / "log",
            env=dict(os.environ),
            cwd=tmp_path,
            ready=lambda: answers[-1],
        )
    )
    made.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    made.state = State.STARTING
    made._healthy_at = clock.now
    assert made.check()
    yield made
    made.process.kill()
    made.process.wait()


def test_a_minute_in_which_nothing_ran_is_not_the_process_fault(
    unit: Unit, clock: Clock, answers: list[bool]
) -> None:
    answers.append(False)
    clock.now += 300.0

    unit.check()

    assert not unit.stuck()


def test_eight_checks_without_an_answer_are(unit: Unit, clock: Clock, answers: list[bool]) -> None:
    answers.append(False)
    for _ in range(7):
        clock.now += 10.0
        unit.check()
    assert not unit.stuck()

    clock.now += 10.0
    unit.check()

    assert unit.stuck()


def test_an_answer_in_between_counts(unit: Unit, clock: Clock, answers: list[bool]) -> None:
    for number in range(20):
        answers.append(number % 5 == 4)
        clock.now += 10.0
        unit.check()

    assert not unit.stuck()
