"""Run a program that never outlives its parent: `python -m workers.leash PARENT_PID -- program …`.

The kernel kills this process (and so the program, which takes its place) when the parent goes, however it
goes. PARENT_PID 0: whoever the parent is.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask for the signal, make sure that the parent is still there, become the program."""
    parent, separator, *program = arguments
    if separator != "--" or not program:
        raise SystemExit(__doc__)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise SystemExit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if int(parent) not in (0, os.getppid()):
        raise SystemExit("the parent has gone")
    os.execvp(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
