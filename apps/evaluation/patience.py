"""What a long command needs of the database is asked again while the database restarts."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections

T = TypeVar("T")

_WITHIN_S = 300.0
_EVERY_S = 2.0


def patiently(call: Callable[[], T], *, within_s: float = _WITHIN_S, every_s: float = _EVERY_S) -> T:
    """Return what `call` returns; it must be one transaction or safe to repeat.

    While the database does not answer it is called again, every `every_s` seconds for up to `within_s`
    seconds; then the database's own error is raised.
    """
    until = time.monotonic() + within_s
    while True:
        try:
            return call()
        except (OperationalError, InterfaceError):
            connections.close_all()
            if time.monotonic() > until:
                raise
            time.sleep(every_s)
