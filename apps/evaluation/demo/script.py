"""What the scripted user knows: questions, complaints, thanks; and in which order they come up."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the words that a reply about it is likely to hold."""

    text: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """The demo's texts. The three sets of questions are disjoint; only `train` is ever learned from."""

    train: tuple[Question, ...]
    validation: tuple[Question, ...]
    held_out: tuple[Question, ...]
    complaints: tuple[str, ...]
    thanks: tuple[str, ...]


def load_script() -> Script:
    """Read the texts that ship with the app."""
    questions = json.loads((_DATA / "questions.json").read_text(encoding="utf-8"))
    words = json.loads((_DATA / "words.json").read_text(encoding="utf-8"))

    def asked(part: str) -> tuple[Question, ...]:
        return tuple(Question(item["text"], tuple(item["keywords"])) for item in questions[part])

    return Script(
        train=asked("train"),
        validation=asked("validation"),
        held_out=asked("held_out"),
        complaints=tuple(words["complaints"]),
        thanks=tuple(words["thanks"]),
    )


@dataclass(frozen=True, slots=True)
class Lines:
    """What the user will say in one session."""

    question: Question
    complaint: str
    thanks: str


def plan_sessions(script: Script, *, seed: int) -> Iterator[Lines]:
    """Yield the sessions' lines without end, the same for the same seed: every question once a round."""
    order = random.Random(seed)  # noqa: S311
    while True:
        for question in order.sample(script.train, len(script.train)):
            yield Lines(question, order.choice(script.complaints), order.choice(script.thanks))
