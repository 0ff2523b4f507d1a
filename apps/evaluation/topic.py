"""Whether a reply is about the question: a guard beside the taste, never part of it."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"[a-z]+")
# Words that a question needs and that say nothing of its subject.
_EMPTY = """a about after after all an and any are as at be been best but by can could did do does down for from get go
    good had has have help her him his how i if in into is it its keep know like made make many me more most much
    my no not of off on one or our out over should so some someone start take tell than that the their them then
    there these they thing things this to up us use used want was way we well were what when where which who why
    will with work would you your"""
_STOP = frozenset(_EMPTY.split())
_SUFFIXES = (
    "ational",
    "ations",
    "ation",
    "ingly",
    "ies",
    "ing",
    "ers",
    "ed",
    "er",
    "es",
    "ly",
    "e",
    "s",
    "y",
)


def is_on_topic(reply: str, *, question: str, keywords: Iterable[str]) -> bool:
    """Return whether the reply shares a content-word stem with the question or with its keywords."""
    subject = content_stems(question) | {stem(word.lower()) for word in keywords}
    return bool(subject & content_stems(reply))


def content_stems(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    return {stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP and len(word) > 2}


def stem(word: str) -> str:
    """Cut common English suffixes off a lower-case word, leaving at least three letters."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return stem(word.removesuffix(suffix))
    return word
