"""When two wishes are one: said in other words, or the one says all that the other does, and more.

No model is asked.
"""

import re
from dataclasses import dataclass

from apps.judging.backends.cue.lexicon import FORMS
from apps.memory.text import Compared, compare, is_near
from apps.memory.topics import topics_of


@dataclass(frozen=True, slots=True)
class Wish:
    """A preference's words as they are compared and filed."""

    words: str
    compared: Compared
    topics: tuple[str, ...]

    @classmethod
    def of(cls, words: str) -> "Wish":
        """Return what `words` say."""
        return cls(words, compare(words), tuple(topics_of(words)))

    @property
    def content(self) -> frozenset[str]:
        """The stems of its words that do not only ask for it."""
        stems = compare(_ENDS.sub("", self.words)).stems
        return frozenset(_PLACES.get(stem, stem) for stem in stems) - _ASKS


def is_same(one: Wish, other: Wish) -> bool:
    """Return whether two say the same: nearly the same words,
    or the same of the same topics but for how it is asked for.

    "Cut it down to one short sentence" and "Say it in one short sentence, and stop" are one wish. Where no
    topic is known, how it is asked for may be all that it says ("Explain the code", "Skip the code").
    """
    if set(one.topics) != set(other.topics):
        return False
    return is_near(one.compared, other.compared) or (bool(one.topics) and one.content == other.content)


def says_more(one: Wish, other: Wish) -> bool:
    """Return whether `one` says all that `other` does and more of its form:
    "a numbered list of three points", "a numbered list".

    Whatever else it adds may limit when it holds ("short answers at work"), or deny something.
    """
    if not other.topics or not set(other.topics) <= set(one.topics) or not other.content < one.content:
        return False
    return all(
        stem.isdigit() or stem in _FORMS or set(topics_of(stem)) & set(one.topics)
        for stem in one.content - other.content
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# as stems
_ASKS = _words(
    "say tell put get speak talk describe show explain turn let cut trim reduce shorten sum stick limit restrict send do call address"
    " down up into back just now still again then understand"
)
# one place in an answer, by any of its names
_PLACES = {
    "start": "begin",
    "beginn": "begin",
    "open": "begin",
    "finish": "end",
    "close": "end",
    "clos": "end",
}
_FORMS = frozenset(stem for word in FORMS for stem in compare(word).stems) | _words(
    "one two three four five six seven eight nine ten twenty fifty hundred each every per begin end"
)
_ENDS = re.compile(
    r"\b(?:and|then)\s+(?:then\s+)?(?:stop|no more|nothing (?:more|else)|that is (?:all|it)|that's (?:all|it)|leave it at that"
    r"|so (?:on|forth)|(?:go|carry) on(?: from there)?|continue(?: from there)?)\b",
    re.IGNORECASE,
)
