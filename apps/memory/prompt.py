"""From a person's preferences to the block of text that stands in their prompts."""

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings

from apps.conversations.told import Told
from apps.engines.chat import chat_format

HEADING = "Preferences of the person you talk to, in their words:"
_QUOTES = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02', "'"))


def told(found: Mapping[str, Any] | None) -> Told | None:
    """Return the block for a prompt, given what `attune_memory` found; None where there is nothing to tell.

    The entries come strongest first; those that the token budget has room for are told, in the order in which
    they were first said, so that a block changes only when what is told changes.
    """
    if not found or not found["on"]:
        return None
    left = settings.MEMORY_BUDGET_TOKENS if found["budget"] is None else found["budget"]
    taken: list[tuple[str, str, str, Mapping[str, Any]]] = []
    tokens = 0
    for entry in found["entries"]:
        line = quoted(entry["words"])
        cost = cost_of(entry["words"])
        if cost <= left:
            left -= cost
            tokens += cost
            kept = {"id": entry["id"], "revision": entry["revision"]}
            taken.append((entry["id"], line, " ".join(entry["words"].split()), kept))
    if not taken:
        return None
    taken.sort(key=lambda one: uuid.UUID(one[0]))
    return Told(
        block([line for _, line, _, _ in taken]),
        tuple(kept for _, _, _, kept in taken),
        tokens,
        chat_format().default_system,
        " ".join(words for _, _, words, _ in taken) if settings.MEMORY_REMINDER else "",
    )


def block(lines: Sequence[str]) -> str:
    """Return the text that follows the operator's own:
    a heading that says whose words these are, and the fenced list."""
    return "\n".join([HEADING, *lines])


def quoted(words: str) -> str:
    """Return one entry as one line between quotes that its words cannot close."""
    return f'- "{" ".join(words.split()).translate(_QUOTES)}"'


def cost_of(words: str) -> int:
    """Return how many tokens of a prompt it takes to tell an entry."""
    return _tokens(f" {' '.join(words.split())}" if settings.MEMORY_REMINDER else f"{quoted(words)}\n")


@lru_cache(maxsize=4096)
def _tokens(text: str) -> int:
    return chat_format().count(text)
