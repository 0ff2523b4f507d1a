"""Scripted users: a taste as a rule, a list of tasks, what they say; and in which order it comes up."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.evaluation.rules import RULES
from apps.evaluation.rules.verdict import Heard, Rule, Verdict
from apps.evaluation.topic import is_on_topic
from kernel.errors import InvalidInput

DATA = Path(__file__).parent / "data"
MAX_TOKENS = 200
"""Of a reply to a user: long enough that nothing passes by being cut."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the words that a reply about it is likely to hold, and those of a reply in French."""

    text: str
    keywords: tuple[str, ...] = ()
    french: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tasks:
    """A task list in three disjoint parts. Only `session` is ever talked about, so only it can be learned from."""

    session: tuple[Question, ...]
    choosing: tuple[Question, ...]
    """Versions are compared on these."""
    reporting: tuple[Question, ...]
    """Figures come from these."""


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Somebody with one taste. What they say is all that a judge ever sees of it."""

    name: str
    wants: str
    """The taste in a few words, for people who read the tables."""
    rule: Rule
    tasks: Tasks
    complaints: tuple[str, ...]
    follow_ups: tuple[str, ...]
    """What they say where the reply to a complaint is not right either."""
    thanks: tuple[str, ...]
    hint: str
    """What a teacher is told; the user never says it as such."""
    reply_tokens: int
    """A longer reply to a question for reporting need not be written: by then the rule's verdict stands, tokens."""

    def judge(self, question: Question, *, text: str, finish_reason: str | None, tokens: int) -> Verdict:
        """Apply the rule to a reply."""
        return self.rule(Heard(text, question.text, finish_reason, tokens))

    def on_topic(self, question: Question, text: str) -> bool:
        """Return whether a reply is about the question, in whichever language."""
        if self.name == "in-french":
            words = {word.casefold() for word in question.french}
            # stems are English; French words are looked for by their beginnings
            if any(word[:5] in text.casefold() for word in words):
                return True
        return is_on_topic(text, question=question.text, keywords=question.keywords)


def load_user(name: str) -> ScriptedUser:
    """Return a user that ships with the app; raises InvalidInput for a name that none has."""
    if name not in RULES:
        raise InvalidInput(f"there is no user {name!r}; there are {', '.join(RULES)}", field="users")
    said = _read(DATA / "users" / f"{name}.json")
    return ScriptedUser(
        name=name,
        wants=said["wants"],
        rule=RULES[name],
        tasks=load_tasks(said["questions"]),
        complaints=tuple(said["complaints"]),
        follow_ups=tuple(said["follow_ups"]),
        thanks=tuple(said["thanks"]),
        hint=said["hint"],
        reply_tokens=said.get("reply_tokens", MAX_TOKENS),
    )


def load_tasks(name: str) -> Tasks:
    """Return a task list that ships with the app."""
    lists = _read(DATA / f"{name}.json")

    def part(name: str) -> tuple[Question, ...]:
        return tuple(
            Question(item["text"], tuple(item["keywords"]), tuple(item.get("french", ())))
            for item in lists[name]
        )

    return Tasks(session=part("session"), choosing=part("choosing"), reporting=part("reporting"))


@dataclass(frozen=True, slots=True)
class Lines:
    """What the user will say in one session, as far as they get."""

    question: Question
    complaints: tuple[str, ...]
    """The first complaint, then follow-ups, no two the same."""
    thanks: str


def plan_sessions(user: ScriptedUser, *, seed: int) -> Iterator[Lines]:
    """Yield the sessions' lines without end, the same for the same seed: every question once a round."""
    order = random.Random(f"{user.name}:{seed}")  # noqa: S311
    while True:
        for question in order.sample(user.tasks.session, len(user.tasks.session)):
            complaint = order.choice(user.complaints)
            follow_ups = order.sample(user.follow_ups, len(user.follow_ups))
            yield Lines(question, (complaint, *follow_ups), order.choice(user.thanks))


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
