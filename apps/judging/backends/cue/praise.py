"""Cues for the reply: praise, thanks, and what works. Praise that is denied speaks against it."""

import re
from collections.abc import Sequence

from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue import signs
from apps.judging.backends.cue.cues import Cue
from apps.judging.backends.cue.reading import words


def praise(text: str) -> list[Cue]:
    found: list[Cue] = []
    if signs.JUST_RIGHT.search(text) and not re.search(
        r"\b(?:not|never|no|nor) (?:\w+ )?(?:make|makes|good|more like|what|exactly|got|any)\b", text
    ):
        found.append(Cue("just right", 2.0))
    if signs.NO_TROUBLE.search(text):
        found.append(Cue("no complaint", 1.5))
    tokens = words(signs.NO_TROUBLE.sub(" ", text))
    if any(token in lex.THANKS for token in tokens) or re.search(r"\bthank you\b", text):
        found.append(Cue("thanks", 1.5))
    if signs.CONDITIONAL.search(text) or signs.EXCESS.search(text):
        return found
    for index, token in enumerate(tokens):
        praise = token in lex.PRAISE or (token in lex.WORKS and _worked(tokens, index))
        praise = praise or (
            token in lex.PRAISE_OF_IT and "what i" not in text and _has_object(tokens[index + 1 :])
        )
        if not praise:
            continue
        if negated(tokens, index):
            found.append(Cue(f"not {token}", -1.8))
        elif token not in ("right", "clear", "easy", "answers", "pass", "help", "super") or _ascribed(
            tokens, index
        ):
            found.append(Cue(token, 1.5))
        if len(found) >= 3:
            break
    if not found and tokens and tokens[0] in lex.ASSENT:
        found.append(Cue("assent", 0.5))
    return found


def _worked(tokens: Sequence[str], index: int) -> bool:
    """Whether "works", "fixed", "passed" is said of what the reply gave, not of how water works."""
    before = [token for token in tokens[:index] if token not in lex.BETWEEN]
    if not before or tokens[index + 1 : index + 2] == ["it"]:
        return True
    return not set(before) & (lex.QUESTION_WORDS | {"if", "whether"}) and before[-1] in lex.WHAT_WORKS


def _has_object(after: Sequence[str]) -> bool:
    return not after or after[0] in {"it", "that", "this", "them", "your", "how", "the", "these", "very"}


def _ascribed(tokens: Sequence[str], index: int) -> bool:
    """Whether a word is said of something ("that is clear") or stands alone, and names no wish."""
    if tokens[index] == "right" and index + 1 < len(tokens):
        return False
    before = tokens[max(0, index - 3) : index]
    return not before or any(
        word in {"is", "was", "are", "and", "very", "so", "really", "that", "it", "tests", "this"}
        for word in before
    )


def negated(tokens: Sequence[str], index: int) -> bool:
    return any(word in lex.NEGATIONS for word in tokens[max(0, index - 4) : index])
