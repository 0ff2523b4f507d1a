"""What a rule sees of a reply, and what it says of it. No rule asks a model anything."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heard:
    """A reply as its reader has it, and the question it answers. `tokens` is the API's own count of the reply."""

    text: str
    question: str = ""
    finish_reason: str | None = "stop"
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reply is to the user's taste; `reason` says why not (empty where it is)."""

    passed: bool
    reason: str = ""
    words: int = 0


Rule = Callable[[Heard], Verdict]


def count_words(text: str) -> int:
    """Count what stands between spaces and holds a letter or a digit."""
    return sum(1 for word in text.split() if any(character.isalnum() for character in word))


def verdict_of(heard: Heard, faults: Mapping[str, bool]) -> Verdict:
    """Return the verdict: the first fault that holds is the reason. An empty reply never passes."""
    words = count_words(heard.text)
    faults = {"empty": words == 0, **faults}
    reason = next((reason for reason, holds in faults.items() if holds), "")
    return Verdict(passed=not reason, reason=reason, words=words)
