"""The scripted user's taste, as a rule: one short sentence."""

import re
from dataclasses import dataclass

from apps.evaluation.demo.sentences import is_finished, split_sentences

MIN_WORDS = 2
MAX_WORDS = 25
# a number with a point or bracket opens an item anywhere, a dash or bullet only at the start of a line
_LIST = re.compile(r"(?:^|\s)\d{1,2}[.)]\s+\S|^\s*[-*\u2022\u2013]\s+\S", re.MULTILINE)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|[^.!?\n]{1,60}:\s*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reply is to the user's taste; `reason` says why not (empty where it is)."""

    passed: bool
    reason: str = ""
    words: int = 0


def one_short_sentence(text: str, *, finish_reason: str | None) -> Verdict:
    """Judge a reply: finished by itself, exactly one whole sentence of 2 to 25 words, no list, no heading."""
    reply = text.strip()
    words = sum(1 for word in reply.split() if any(character.isalnum() for character in word))
    reason = _fault(reply, words, finish_reason)
    return Verdict(passed=not reason, reason=reason, words=words)


def _fault(reply: str, words: int, finish_reason: str | None) -> str:
    sentences = split_sentences(reply)
    # in order: the first that holds is the reason
    faults = {
        "cut off": finish_reason != "stop",
        "empty": not sentences,
        "a list or a heading": bool(_LIST.search(reply) or _HEADING.search(reply)),
        "several sentences": len(sentences) > 1,
        "not a whole sentence": not all(map(is_finished, sentences)),
        "too many words": words > MAX_WORDS,
        "too few words": words < MIN_WORDS,
    }
    return next((reason for reason, holds in faults.items() if holds), "")
