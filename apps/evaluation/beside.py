"""Run a management command beside a running platform:
in the environment of its processes, as one of them would."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from django.conf import settings
from django.core.management.base import CommandError

from apps.evaluation.stack import Stack, StackFailed, running_stack

INTERRUPTED = 130
"""The exit status of a command that a person ended."""
_INSIDE = "ATTUNE_BESIDE_STACK"  # set for the child that runs in the platform's environment


def handed_stack() -> Stack | None:
    """Return the platform that this process runs beside; None in the process that a person started.

    From then on a request to end is an interruption, so that what is open is put away.
    """
    handed = os.environ.get(_INSIDE)
    if not handed:
        return None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return Stack.from_json(handed)


def run_beside(command: str, arguments: Sequence[str], *, say: Callable[[str], None]) -> int:
    """Reach the platform (or start one for the time), run the command again beside it,
    and return its exit status."""
    try:
        with running_stack(
            settings.ATTUNE_HOME, settings.BASE_DIR, log_name=f"{command}-up.log", say=say
        ) as stack:
            child = subprocess.Popen(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), command, *arguments],
                env={**os.environ, **stack.environment, _INSIDE: stack.to_json()},
            )
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            try:
                return child.wait()
            except KeyboardInterrupt:  # the child got it too: let it put its things away
                return child.wait() or INTERRUPTED
    except StackFailed as error:
        raise CommandError(str(error)) from error


def innermost(error: BaseException) -> BaseException:
    """Return the first error of a group, of its first group, and so on."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
