"""What a benchmark will do: which runs, under which terms,
and the fingerprint that results are recognised by."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from apps.evaluation.personalization.methods import METHODS, Method
from apps.evaluation.talk import TEMPERATURE
from apps.evaluation.users import MAX_TOKENS

REFERENCE = "reference"
"""Stands where a run has its method: the bare base and the hinted teacher, which belong to no method."""
TEACHER_TIMES = 3
"""The hinted teacher gives so many times the replies of any other:
runs of several seeds are held against its one rate,
and sixty replies of a teacher that passes three times in four pass between 38 and 52 times."""
_ROOM = Path(__file__).parents[1]
_DECIDES = ("rules/*.py", "data/**/*.json", "sentences.py", "topic.py", "loops.py", "talk.py", "users.py")

Mode = Literal["sessions", "once"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every run of a benchmark."""

    mode: Mode = "sessions"
    cap: int = 72
    """Sessions after which a run ends; one that has not converged by then counts as this many."""
    turns: int = 8
    """Messages of the user in a session, at most."""
    in_a_row: int = 3
    """First replies in a row that must pass."""
    questions: int = 20
    """Of the questions for reporting the first so many; fewer than all are for a quick look."""
    replies: int = 3
    """Replies to each of them."""
    idle_s: float = 5.0
    """Between two sessions at least so long nobody talks, seconds."""
    patience_s: float = 60.0
    """Where the policy trains: so long at most the user stays away for a newer version to answer, seconds."""
    idle_minutes: float = 10.0
    """How long nobody talks at the end, where the policy trains, minutes:
    after the one complaint, or after the last session."""
    settles_s: float = 5.0
    """Told once: from the complaint to the first request after it, seconds."""


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One run: a method (or the reference), a scripted user, a seed."""

    seed: int
    user: str
    method: str

    def __str__(self) -> str:
        return f"{self.method}/{self.user}/{self.seed}"

    @classmethod
    def parse(cls, text: str) -> "RunKey":
        """Read what `str` wrote."""
        method, user, seed = text.split("/")
        return cls(int(seed), user, method)


def reference_of(user: str) -> RunKey:
    """Return the run that measures the bare base for a user."""
    return RunKey(0, user, REFERENCE)


@dataclass(frozen=True, slots=True)
class Plan:
    """A benchmark: every method with every user and every seed, under the same terms."""

    methods: tuple[Method, ...]
    users: tuple[str, ...]
    seeds: tuple[int, ...]
    terms: Terms
    base_model: str
    model: str = ""
    """Which files the base model is of: `references.model_hash`."""

    def references(self) -> list[RunKey]:
        """Return the runs that measure the bare base and the hinted teacher, one for a user:
        no seed has a part in them."""
        return [reference_of(user) for user in self.users]

    def runs(self) -> list[RunKey]:
        """Return the methods' runs: all methods of a user and a seed side by side,
        so that half a benchmark compares too."""
        return [
            RunKey(seed, user, method.name)
            for seed in self.seeds
            for user in self.users
            for method in self.methods
        ]

    def fingerprint(self, key: RunKey) -> str:
        """Return what decides about a run's result and can be known: terms, method, texts, rules.

        Hex, 16 characters.
        """
        said: dict[str, Any] = {
            "run": str(key),
            "base_model": self.base_model,
            "temperature": TEMPERATURE,
            "texts_and_rules": texts_and_rules(),
        }
        if key.method == REFERENCE:
            said |= {
                "questions": self.terms.questions,
                "replies": [self.terms.replies, TEACHER_TIMES],
                "model": self.model,
            }
        else:
            method = METHODS[key.method]
            said |= {
                "terms": asdict(self.terms),
                "config": dict(method.config),
                "switches": [method.trains, method.memory, method.shadow],
                "max_tokens": MAX_TOKENS,
            }
            if self.terms.mode == "sessions" and method.trains:
                said["after_the_last_session"] = "idle minutes; held out is what is live at their end"
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def texts_and_rules() -> str:
    """Return the SHA-256 of everything that says what is asked, said and passed. Hex, 16 characters."""
    digest = hashlib.sha256()
    for path in _deciding():
        digest.update(str(path.relative_to(_ROOM)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _deciding() -> Iterator[Path]:
    for pattern in _DECIDES:
        yield from sorted(_ROOM.glob(pattern))
