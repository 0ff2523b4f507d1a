"""Everything a benchmark has found out, a line each: what is in the file is never done again.

A line is on disk before the next thing begins. A process that dies leaves at most half a line, which is
dropped.
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from django.utils import timezone

from apps.evaluation.personalization.plan import REFERENCE, Plan, RunKey
from kernel.errors import Conflict

Line = Mapping[str, Any]

UNRECORDED = "a machine that was not recorded"


@dataclass(slots=True)
class Past:
    """What the journal says of one run."""

    tenant: str = ""
    """Slug of the tenant that the run has for itself; empty where it has not begun."""
    sessions: dict[int, Line] = field(default_factory=dict)
    """The sessions that came to their end, by number."""
    interrupted: int = 0
    """Sessions that were begun and never came to their end."""
    steps: dict[str, Line] = field(default_factory=dict)
    """What else was found out, by the step's name; `ended` says that there is nothing left to do."""
    codes: set[str] = field(default_factory=set)
    machines: set[str] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        """Whether the run is over and measured."""
        return "ended" in self.steps


class Journal:
    """The lines of a benchmark in one file, for one process at a time."""

    def __init__(self, path: Path, *, code: str, machine: str) -> None:
        self._path = path
        self._code, self._machine = code, machine
        self._lines: list[Line] = []
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Journal":
        """Open and lock the file; raises Conflict where another process writes it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise Conflict(f"another benchmark writes {self._path}") from error
        file.seek(0)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) != len(content):
            file.truncate(len(whole))
        self._lines = [json.loads(line) for line in whole.splitlines()]
        self._file = file
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def lines(self) -> Sequence[Line]:
        """Everything written so far, oldest first."""
        return self._lines

    def write(self, event: str, key: RunKey, fingerprint: str, **found: Any) -> Line:
        """Add a line; it is on disk when this returns."""
        line = {
            "event": event,
            "run": str(key),
            "fingerprint": fingerprint,
            "code": self._code,
            "machine": self._machine,
            "at": timezone.now().isoformat(timespec="seconds"),
            **found,
        }
        self.copy(line)
        return line

    def copy(self, line: Line) -> None:
        """Add a line as another benchmark wrote it; it is on disk when this returns."""
        if self._file is None:
            raise RuntimeError("the journal is not open")
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._lines.append(line)

    def past(self, plan: Plan) -> dict[RunKey, Past]:
        """Return what is known of each run of a plan: see `past_of`."""
        return past_of(self._lines, plan)


def read(path: Path) -> list[Line]:
    """Return the whole lines of a journal that another process may be writing;
    none where there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]


def past_of(lines: Sequence[Line], plan: Plan) -> dict[RunKey, Past]:
    """Return what lines say of each run of a plan; raises Conflict where a run was done under other terms.

    A run that was begun anew (its tenant was gone) is known from its last beginning only.
    """
    known = {key: Past() for key in [*plan.references(), *plan.runs()]}
    fingerprints = {key: plan.fingerprint(key) for key in known}
    for line in lines:
        key = RunKey.parse(line["run"])
        if key not in known:
            continue
        if line["fingerprint"] != fingerprints[key]:
            if key.method == REFERENCE:
                continue  # of another model or other questions: measured again
            raise Conflict(
                f"the journal has results of {key} under other terms, texts or rules ({line['fingerprint']} is not"
                f" {fingerprints[key]}): write to another --out"
            )
        known[key] = _grown(known[key], line)
    return known


def _grown(past: Past, line: Line) -> Past:
    if line["event"] == "begun":
        past = Past(tenant=line["tenant"])
    elif line["event"] == "session-begun":
        past.interrupted += 1
    elif line["event"] == "session":
        past.sessions[line["session"]] = line
        past.interrupted -= 1
    else:
        past.steps[line["event"]] = line
    past.codes.add(line["code"])
    past.machines.add(line.get("machine", UNRECORDED))
    return past
