"""Split a reply into sentences, carefully enough to count them."""

import re

_NEVER_LAST = (
    "mr mrs ms dr prof st sen rep gen capt lt col rev hon vs e.g i.e eg ie cf approx fig vol pp ca al"
)
_SELDOM_LAST = "etc inc ltd co corp jr sr a.m p.m u.s u.k u.n b.c a.d ph.d"
_FIRST = (
    "a an and but he her his however i if in it its my our she so that the their then there these they "
    "this those to we when you"
)
# A period after these never ends a sentence.
_ABBREVIATIONS = frozenset(_NEVER_LAST.split())
# A period after these ends a sentence only where a capital follows.
_CLOSING_ABBREVIATIONS = frozenset(_SELDOM_LAST.split())
# After a lone capital these open a new sentence ("vitamin C. It helps"): the capital was no initial.
_OPENERS = frozenset(_FIRST.split())
_CLOSERS = "\"'\u201d\u2019\u00bb)]*_"
_LEADERS = "\"'\u201c\u2018("
_MARK = re.compile(r"[.!?…]+")
_GLUED = re.compile(r"(?<=[a-z]{2})([.!?])(?=[A-Z][a-z])")
_LAST_WORD = re.compile(r"[\w.]*$")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order, each stripped; a line break always separates.

    Abbreviations, initials, decimals, an ellipsis that goes on, and a quotation that ends inside a sentence do
    not separate. A missing space after a period ("hot.The") does.
    """
    found: list[str] = []
    for line in text.splitlines():
        found += _split_line(_GLUED.sub(r"\1 ", line.strip()))
    return found


def is_finished(sentence: str) -> bool:
    """Return whether a sentence ends in a terminal mark, closing quotes and brackets aside."""
    return sentence.rstrip(_CLOSERS + " ").endswith((".", "!", "?", "…"))


def _split_line(line: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for mark in _MARK.finditer(line):
        end = mark.end()
        while end < len(line) and line[end] in _CLOSERS:
            end += 1
        if end < len(line) and line[end].isspace() and _ends(line, mark, end, first=start):
            parts.append(line[start:end].strip())
            start = end
    rest = line[start:].strip()
    return [part for part in [*parts, rest] if part]


def _ends(line: str, mark: re.Match[str], end: int, *, first: int) -> bool:
    """Return whether the mark, closers up to `end`, ends the sentence that began at `first`."""
    follows = line[end:].lstrip()
    goes_on = follows[:1].islower()
    if mark.group() != ".":
        # "Really…" she said; "Stop!" he cried; a plain ? or ! ends even before a lower-case letter
        return not (goes_on and (mark.group().endswith(("..", "…")) or end > mark.end()))
    word = _last_word(line[first : mark.start()])
    if word.lower() in _ABBREVIATIONS:
        return False
    if word.lower() in _CLOSING_ABBREVIATIONS:
        return not goes_on
    if word.lower() in {"no", "nos"}:  # No. 5
        return not follows[:1].isdigit()
    is_initial = len(word) == 1 and word.isupper()  # J. Verne
    return not (is_initial and _first_word(follows) not in _OPENERS)


def _last_word(text: str) -> str:
    found = _LAST_WORD.search(text)
    return found.group() if found else ""


def _first_word(text: str) -> str:
    return (text.split(maxsplit=1) or [""])[0].strip(_LEADERS).lower()
