"""Trainer processes whose child is the fake one."""

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

from apps.learning import runs
from workers.trainer_command import trainer_environment
from workers.trainer_process import TrainerProcess
from workers.training import work_on

FAKE = Path(__file__).with_name("fake_trainer.py")


class Fake:
    """A trainer process and its control file."""

    def __init__(self, folder: Path, name: str = "trainer") -> None:
        self.control = folder / f"{name}.json"
        self.orders(mode="made")
        self.process = TrainerProcess(
            [sys.executable, str(FAKE), str(self.control)], trainer_environment(os.environ)
        )

    def orders(self, **orders: Any) -> None:
        """Say how the next steps go."""
        self.control.write_text(json.dumps(orders), encoding="utf-8")

    def seen(self) -> list[list[str]]:
        """Return the sample ids of every step it was asked for."""
        seen = self.control.with_suffix(".seen")
        return [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []

    def lines(self) -> list[list[str]]:
        """Return the run ids of every line it was asked: one, or those that share a pass."""
        lines = self.control.with_suffix(".lines")
        return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


def train_run(*, run_id: uuid.UUID, trainer: TrainerProcess) -> None:
    """Work on this run and no other, in its tenant's scope; does nothing where it is not to be had."""
    claim = runs.claim_run(run_id=run_id)
    if claim is not None:
        work_on([claim], trainer)
