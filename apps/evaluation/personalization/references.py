"""What the bare base does, without the hint and with it:
measured once for a user, kept for every later benchmark.

Neither seed nor method has a part in it, so the lines are recognised by what has: questions, rule, hint, how
replies are sampled, and the very files of the model. A line of another model is not stale data but no data:
it is measured again.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from apps.evaluation.personalization.journal import Line, Past, read
from apps.evaluation.personalization.plan import Plan, RunKey

FILE = "references.jsonl"
_PARTS = ("base", "hinted", "ended")


@cache
def model_hash(directory: Path) -> str:
    """Return the SHA-256 over a model's files, hex, 16 characters; empty where there is no model yet."""
    files = sorted(path for path in directory.glob("*") if path.suffix in (".json", ".safetensors"))
    if not any(path.suffix == ".safetensors" for path in files):
        return ""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def known_elsewhere(path: Path, plan: Plan, past: Mapping[RunKey, Past]) -> list[Line]:
    """Return the lines of references that a plan lacks and that were measured, whole,
    by an earlier benchmark."""
    if not plan.model:
        return []
    lines = read(path)
    found: list[Line] = []
    for key in plan.references():
        if past[key].ended:
            continue
        mine = {
            line["event"]: line
            for line in lines
            if line["run"] == str(key) and line["fingerprint"] == plan.fingerprint(key)
        }
        found += [mine[name] for name in _PARTS] if all(name in mine for name in _PARTS) else []
    return found


def keep(path: Path, lines: Sequence[Line]) -> None:
    """Add a reference's lines to those that later benchmarks find; whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def lines_of(past: Past) -> list[Line]:
    """Return an ended reference as `keep` takes it."""
    return [past.steps[name] for name in _PARTS]


def as_measured(line: Line) -> dict[str, Any]:
    """Return a reference's figures as those of another run, which say where they are from."""
    own = {
        name: value
        for name, value in line.items()
        if name not in ("event", "run", "fingerprint", "code", "at")
    }
    return {**own, "seconds": 0.0, "same_as": line["run"]}
