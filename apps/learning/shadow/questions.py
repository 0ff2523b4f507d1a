"""What shadow rollouts answer: questions that the tenant's people asked, and a small neutral set that ships.

Nothing that a version is measured or chosen by is ever answered here: the neutral set comes in disjoint
parts, and what was asked with the `evaluate` scope is left out.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.db.models.fields.json import KeyTextTransform, KeyTransform

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.judging.personal_data import why_not_trained_on
from apps.judging.rules import rules_of
from apps.memory.people import Person

FEW = 8
"""The stored questions are filled up to so many with neutral ones; four were enough to generalise from."""
MANY = 24
_LONGEST = 600  # characters of a stored question
_LOOK_AT = 400  # of a person's newest sessions
_MEASURED = 5000


@dataclass(frozen=True, slots=True)
class Question:
    """A chat of one question, with the operator's system text where it had one."""

    messages: tuple[dict[str, Any], ...]
    key: str
    asked_in: uuid.UUID | None = None
    """The turn that asked it; None for a neutral one."""

    @property
    def stored(self) -> bool:
        """Whether a person asked it."""
        return self.asked_in is not None


@dataclass(frozen=True, slots=True)
class Neutral:
    """The questions that ship: to teach with, to choose a version by,
    and statements that any version should still know."""

    teaching: tuple[str, ...]
    choosing: tuple[str, ...]
    general: tuple[tuple[str, str, str], ...]
    """(beginning, right ending, wrong ending)."""


@cache
def neutral() -> Neutral:
    """Read the set."""
    found = json.loads((Path(__file__).parent / "data" / "neutral.json").read_text(encoding="utf-8"))
    return Neutral(
        tuple(found["teaching"]),
        tuple(found["choosing"]),
        tuple((one["text"], one["right"], one["wrong"]) for one in found["general"]),
    )


def key_of(text: str) -> str:
    """Return what makes two questions the same: their words."""
    return hashlib.sha256(" ".join(re.findall(r"\w+", text.casefold())).encode()).hexdigest()


def asks_to_choose_by(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a person asks, anywhere in a chat, one of the questions that versions are chosen by."""
    asked = (one.get("content") for one in messages if one["role"] == "user")
    return any(
        isinstance(text, str) and len(text) <= _LONGEST and key_of(text) in _choosing_keys() for text in asked
    )


@cache
def _choosing_keys() -> frozenset[str]:
    return frozenset(key_of(text) for text in neutral().choosing)


def teaching_questions(policy: Policy, person: Person) -> list[Question]:
    """Return what may be answered for a person of a policy:
    what they asked, newest first, then neutral ones."""
    never = _measured(policy) | _choosing_keys()
    mode = rules_of(policy).personal_data
    found: dict[str, Question] = {}
    for turn_id, messages in _asked(policy, person):
        key = key_of(messages[-1]["content"])
        if len(found) == MANY:
            break
        taken = key in never or key in found
        if not taken and not why_not_trained_on(mode, request=messages, reply={}, next_state=None):
            found[key] = Question(tuple(messages), key, turn_id)
    system = _system(list(found.values()))
    for text in neutral().teaching:
        key = key_of(text)
        if len(found) >= FEW:
            break
        if key not in never and key not in found:
            found[key] = Question((*system, {"role": "user", "content": text}), key)
    return list(found.values())


def _asked(policy: Policy, person: Person) -> list[tuple[uuid.UUID, list[dict[str, Any]]]]:
    """Return the first requests of the person's sessions: one question each, without tools."""
    turns = (
        Turn.objects.filter(
            policy=policy,
            kind=TurnKind.LIVE,
            state=TurnState.COMPLETE,
            side=False,
            parent__isnull=True,
            tools__isnull=True,
            session__user_id=person.user_id,
            session__end_user_id=person.end_user_id,
        )
        .order_by("-id")
        .values_list("id", "messages")[:_LOOK_AT]
    )
    return [(turn_id, messages) for turn_id, messages in turns if _is_one_question(messages)]


def _is_one_question(messages: Sequence[dict[str, Any]]) -> bool:
    roles = [message["role"] for message in messages]
    content = messages[-1].get("content") if messages else None
    return (
        roles in (["user"], ["system", "user"]) and isinstance(content, str) and 3 <= len(content) <= _LONGEST
    )


def _system(stored: Sequence[Question]) -> tuple[dict[str, Any], ...]:
    """Return the operator's system text of the newest stored question:
    neutral ones are asked under the same."""
    return stored[0].messages[:-1] if stored else ()


def _measured(policy: Policy) -> set[str]:
    """Return the questions that versions of the policy were measured with."""
    content = KeyTextTransform("content", KeyTransform("-1", "messages"))
    asked = (
        Turn.objects.filter(policy=policy, kind=TurnKind.EVALUATION)
        .annotate(question=content)
        .order_by()
        .values_list("question", flat=True)
        .distinct()[:_MEASURED]
    )
    return {key_of(text) for text in asked if text}
