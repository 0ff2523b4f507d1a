"""How a task is declared: by name, with the retries that every task gets."""

from collections.abc import Callable
from typing import ParamSpec

from django.db import InterfaceError, OperationalError

from workers.app import app

P = ParamSpec("P")

RETRIES = 6
BACKOFF_S = 1  # doubles, with jitter
BACKOFF_MAX_S = 60


def task(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a function as the task `name`, and return it as it is.

    While the database is away the task is tried again, `RETRIES` times with backoff; after that upkeep finds
    the work by its row. Any other error is logged and ends the task: what it means for the row is the
    function's business.
    """

    def register(function: Callable[P, None]) -> Callable[P, None]:
        app.task(
            name=name,
            autoretry_for=(OperationalError, InterfaceError),
            max_retries=RETRIES,
            retry_backoff=BACKOFF_S,
            retry_backoff_max=BACKOFF_MAX_S,
            retry_jitter=True,
        )(function)
        return function

    return register
