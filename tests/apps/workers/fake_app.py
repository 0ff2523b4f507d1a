"""The Celery application with the fake trainer's child for the real one:
`celery -A tests.apps.workers.fake_app`."""

import os
import sys

from workers import trainer_process
from workers.app import app


def _command() -> list[str]:
    return [sys.executable, *os.environ["FAKE_TRAINER"].split("\n")]


trainer_process.trainer_command = _command

__all__ = ["app"]
