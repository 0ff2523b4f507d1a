"""Run an engine with its keys kept out of what it logs: SGLang prints all its options when it starts.

`python -m embedded.serve CONFIG` starts the server for the options in CONFIG and passes its lines on without
the keys. It ends as the server ends, and passes on the signal to stop.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from embedded import processes

SECRETS = ("api-key", "admin-api-key")
"""The options that no log may show."""
HIDDEN = b"[hidden]"
_LONGEST_LINE = 1024 * 1024
_LOOK_EVERY_S = 0.2


class Redactor:
    """Passes whole lines on, without secrets."""

    def __init__(self, secrets: Iterable[str], output: IO[bytes]) -> None:
        # the longest first: one may be a part of another
        self._secrets = sorted((secret.encode() for secret in secrets if secret), key=len, reverse=True)
        self._output = output
        self._rest = b""

    def push(self, data: bytes) -> None:
        """Take in what was printed; the beginning of a line waits for its end."""
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        self._write(whole + newline)
        if len(self._rest) > _LONGEST_LINE:
            self.finish()

    def finish(self) -> None:
        """Pass the last line on, which has no end."""
        self._write(self._rest)
        self._rest = b""

    def _write(self, text: bytes) -> None:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        if text:
            self._output.write(text)
            self._output.flush()


def run(argv: Sequence[str], *, secrets: Iterable[str], output: IO[bytes]) -> int:
    """Run a program until it ends and return its exit code;
    what it prints goes to `output` without `secrets`."""
    reading, writing = os.pipe()
    child = processes.spawn(argv, output=writing, own_session=False)
    os.close(writing)
    os.set_blocking(reading, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: child.send_signal(number))
    redactor = Redactor(secrets, output)
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        # children of the program may live on for a moment and hold the pipe open: its own end is what counts
        while not processes.has_exited(child):
            if selector.select(_LOOK_EVERY_S) and not _passed_on(reading, redactor):
                break
    code = child.wait()
    _passed_on(reading, redactor)
    redactor.finish()
    return code


def _passed_on(reading: int, redactor: Redactor) -> bool:
    """Pass on what is there now; returns whether more may come."""
    while True:
        try:
            data = os.read(reading, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        redactor.push(data)


def main() -> int:
    """Run the server whose options the file holds."""
    config = Path(sys.argv[1])
    options = json.loads(config.read_text(encoding="utf-8"))
    code = run(
        [sys.executable, "-m", "sglang.launch_server", "--config", str(config)],
        secrets=[str(options[name]) for name in SECRETS if options.get(name)],
        output=sys.stdout.buffer,
    )
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
