"""What a complaint asks for, as an instruction that can stand after the question it was about.

The user's words are kept; only their frame is taken off ("I was hoping for …", "could you …", "… is plenty")
and, where a noun phrase is left, "Answer in …" or "Answer with …" is put before it.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence

from apps.judging.backends.cue import frames, phrasing
from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue.reading import (
    LONGEST_WISH,
    Clause,
    clauses,
    plain,
    sentences,
    stem,
    topic,
    words,
)
from apps.judging.backends.cue.signs import LEAVE_OUT, MUCH, SOUNDS_LIKE
from apps.judging.backends.cue.subjects import Subjects, without_quotes
from apps.judging.backends.cue.weighing import is_new_task, speaks_of_form
from apps.judging.judge import MIN_HINT_CHARACTERS

MOST = 3  # instructions in one hint


def wishes(said: str, *, asked: str) -> list[str]:
    """Return the hint that a complaint holds (one text of up to three instructions,
    the clearest first), or nothing."""
    found: list[tuple[int, str]] = []
    subjects = Subjects(without_quotes(said), asked=asked)
    for sentence in sentences(said):
        parts = clauses(sentence)
        others = [subjects.elsewhere(clause) for clause in clauses(without_quotes(sentence))]
        about = [*map(operator.not_, others)] if len(others) == len(parts) else [not any(others)] * len(parts)
        if len(sentence) > LONGEST_WISH or not any(about):
            continue
        wish = _of_sentence(sentence, parts, about, known=topic(asked))
        if wish is not None and wish[1] not in [text for _, text in found]:
            found.append(wish)
    if any(rank == 0 for rank, _ in found):
        asked_for = _asked_for(text for rank, text in found if rank == 0)
        found = [wish for wish in found if wish[0] <= 1 and not _denies(wish[1], asked_for)]
    found.sort(key=lambda wish: wish[0])
    if not found:
        return []
    hint = " ".join(text for _, text in found[:MOST])
    return [hint if len(hint) >= MIN_HINT_CHARACTERS else f"In your answer, {phrasing.lower_first(hint)}"]


def _asked_for(instructions: Iterable[str]) -> set[str]:
    """Return the stems of what instructions ask for; of one that also denies something none is certain."""
    found = [words(plain(text)) for text in instructions]
    return {stem(word) for one in found if not set(one) & lex.NEGATIONS for word in one}


def _denies(instruction: str, asked_for: set[str]) -> bool:
    """Whether an instruction leaves out just what another one asks for.

    "No steps! Number the steps." was a reproach.
    """
    match = frames.WITHOUT_ONE.match(instruction)
    return match is not None and stem(match.group(1).casefold()) in asked_for


def _of_sentence(
    sentence: str, parts: Sequence[Clause], about: Sequence[bool], *, known: frozenset[str]
) -> tuple[int, str] | None:
    """Return (rank, instruction) of a sentence, from its clauses that are about the reply.

    Rank 0 says what is wanted, 1 what is not, 2 follows from a degree, 3 corrects.
    """
    aside: tuple[int, str] | None = None
    for start, clause in enumerate(parts):
        rest = phrasing.strip(sentence[sentence.find(clause.text) :]) if start else phrasing.strip(sentence)
        if not rest or not about[start] or is_new_task(clause, known):
            continue
        own = phrasing.strip(clause.text)
        if frames.NEEDLESS.match(own) or frames.LACKS.match(
            own
        ):  # what it says beside that is what is wanted
            aside = aside or (_none_of(own) if _is_form(own, known) else None)
            continue
        made = _frame(rest, known) or _fragment(_phrase(parts[start:]), known)
        if made is not None and _says_something(made[1]):
            return made
    if aside is not None or not all(about):
        return aside
    for take in (_degree, _omission, _likeness):
        made = take(phrasing.strip(sentence), known)
        if made is not None:
            return made
    return _correction(sentence, known)


def _phrase(parts: Sequence[Clause]) -> str:
    """Return the first clause with those that only qualify it: "a summary, not an essay"."""
    taken = [phrasing.strip(parts[0].text)]
    if not taken[0]:
        return ""
    for clause in parts[1:]:
        if clause.words[0] not in frames.QUALIFIES:
            break
        taken.append(phrasing.strip(clause.text))
    return ", ".join(taken)


def _says_something(instruction: str) -> bool:
    """Whether an instruction names a form or a topic: "do it over" does not."""
    found = words(plain(instruction))
    if found[:1] == ["answer"] or len(found) >= 6:
        return True
    return bool(set(found) & (lex.FORMS | lex.LANGUAGES) - {"better", "answer"}) or bool(topic(instruction))


def _frame(text: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Take the frame of a wish or a request off; None where there is none."""
    unfit = False
    for pattern, make in _FRAMES:
        match = pattern.match(text)
        if match is not None:
            made = make(match, known)
            if made:
                return 0, made
            unfit = unfit or (made == "" and _is_form(text, known))
    if unfit:  # no instruction can be built of it: the sentence says it best
        return 0, phrasing.sentence_of(text)
    text = phrasing.without_adverbs(text)
    if LEAVE_OUT.search(plain(text)):
        return 0, phrasing.imperative(text)
    first = words(plain(text))[:2]
    if first and first[0] in lex.VERBS and not phrasing.is_question(text):
        return (
            1 if first[0] in {"stop", "avoid", "don't", "quit"} or first == ["do", "not"] else 0
        ), phrasing.imperative(text)
    return None


def _fragment(text: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Make an instruction of a phrase without a verb of its own that names a form:
    "shorter", "two sentences"."""
    if not text or phrasing.is_question(text) or not _is_form(text, known):
        return None
    if plain(text) in frames.BULKY:
        return 2, f"Give a {frames.OPPOSITE[plain(text)]} answer."
    if frames.NO_MORE.match(text):
        return _none_of(text)
    for pattern, make in _FRAGMENTS:
        match = pattern.match(text)
        if match is not None:
            return make(match)
    found = words(plain(text))
    if found[0] in frames.ARTICLES | lex.FORMS and not {"is", "are", "was", "were", "has", "have"} & set(
        found
    ):
        return 0, phrasing.answer_with(text)
    return None


def _none_of(text: str) -> tuple[int, str] | None:
    """Make an instruction of "no …": to leave it out or, where the reply lacks it, to have more;
    None where it may be either.

    What is not needed is left out, unless no answer would be asked to be without it: "no order needed" asks
    for nothing.
    """
    needless = frames.NEEDLESS.match(text)
    if needless is not None:
        what = phrasing.lower_first(needless.group(1) or needless.group(2))
        return (
            None if frames.LACKS.match(f"no {what}") else (1, phrasing.sentence_of(f"answer without {what}"))
        )
    lacking = frames.LACKS.match(text)
    if lacking is not None:
        return 2, f"Answer with more {lacking.group(1).lower()}."
    if frames.OF_IT.search(text) and not set(words(plain(text))) & lex.UNWANTED:
        return None
    match = frames.NO_MORE.match(frames.OF_IT.sub("", text))
    if match is None:
        return None
    return 1, phrasing.sentence_of(f"answer without {phrasing.lower_first(phrasing.strip(match.group(1)))}")


def _degree(text: str, _known: frozenset[str]) -> tuple[int, str] | None:
    if MUCH.search(plain(text)):
        return 2, "Give a shorter answer."
    match = frames.TOO.search(plain(text))
    word = match.group(1) if match else next((w for w in words(plain(text)) if w in lex.BULK), "")
    if match is None and not word:
        return None
    manner = frames.OPPOSITE.get(word) or ("shorter" if word in lex.BULK else "")
    if manner:
        return 2, f"Give a {manner} answer."
    is_excess = match is not None and match.group().split()[0] in ("too", "overly") and word not in lex.KIND
    return (2, f"Give an answer that is less {word}.") if is_excess else None


def _omission(text: str, _known: frozenset[str]) -> tuple[int, str] | None:
    match = frames.FORGOT.match(text)
    return (1, phrasing.sentence_of(f"do not forget {match.group(1)}")) if match else None


def _likeness(text: str, _known: frozenset[str]) -> tuple[int, str] | None:
    match = frames.LIKE.match(text) if SOUNDS_LIKE.search(plain(text)) else None
    return (1, phrasing.sentence_of(f"do not sound like {match.group(1)}")) if match else None


def _correction(sentence: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Keep a sentence that says how things are, for it corrects the reply."""
    text = phrasing.strip(sentence)
    found = words(plain(text))
    if (
        len(found) < 4
        or phrasing.is_question(text)
        # what the reply lacks
        or (set(found) & lex.NEGATIONS and (frames.OF_IT.search(text) or _is_form_that_is_missing(found)))
        or found[0] in lex.AUXILIARIES | {"i", "you", "your", "this", "my"}
    ):
        return None
    empty = {stem(word) for word in lex.BLAME | lex.DOUBT | lex.PRAISE | lex.WISHES | lex.CONFUSION}
    return (3, phrasing.sentence_of(text)) if topic(text) - empty else None


def _is_form_that_is_missing(found: Sequence[str]) -> bool:
    return found[0] == "there" and bool(set(found) & lex.FORMS)


def _is_form(text: str, known: frozenset[str]) -> bool:
    return any(speaks_of_form(clause, known) for clause in clauses(text)[:1])


def _from_wish(match: re.Match[str], known: frozenset[str]) -> str | None:
    rest = phrasing.strip(match.group(match.lastindex or 1))
    past = frames.YOU_PAST.match(rest)
    if past is not None:
        return phrasing.sentence_of(frames.PRESENT[past.group(1).casefold()] + past.group(2))
    found = words(plain(rest))
    if not found or found[0] in {"i", "you", "was", "is", "not", "that"}:
        return None
    return phrasing.answer_with(rest)


def _from_us(match: re.Match[str], known: frozenset[str]) -> str | None:
    first = words(plain(match.group(1)))[:1]
    return phrasing.imperative(match.group(1)) if first and first[0] in lex.VERBS else None


def _from_sufficiency(match: re.Match[str], known: frozenset[str]) -> str | None:
    phrase = phrasing.strip(match.group(1))
    found = words(plain(phrase))
    if (
        not found
        or found[0] in {"that", "this", "it", "which", "what", "i", "you", "they", "he", "she"}
        or not _is_form(phrase, known)
    ):
        return None
    return phrasing.answer_with(phrase)


_FRAMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], frozenset[str]], str | None]], ...] = (
    (frames.MIND, lambda match, _known: phrasing.imperative(phrasing.without_ing(match.group(1)))),
    (frames.REQUEST, lambda match, _known: phrasing.imperative(match.group(1))),
    (frames.COULD_BE, lambda match, _known: phrasing.answer_with(match.group(1))),
    (frames.SHOULD, lambda match, _known: phrasing.imperative(match.group(1))),
    (frames.ENOUGH, _from_sufficiency),
    (frames.HAPPIER, lambda match, _known: phrasing.answer_with(match.group(1))),
    (frames.GET, lambda match, _known: phrasing.answer_with(match.group(1))),
    (frames.ALL_I, lambda match, _known: phrasing.answer_with(match.group(1))),
    (frames.SHOULD_BE, lambda match, _known: phrasing.answer_with(match.group(1))),
    (frames.SUFFICES, _from_sufficiency),
    (frames.WISH, _from_wish),
    (frames.WE, _from_us),
)
_FRAGMENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[int, str]]], ...] = (
    (frames.NOT_ENOUGH, lambda match: (0, phrasing.sentence_of(f"answer with more {match.group(1)}"))),
    (
        frames.COMPARED,
        lambda match: (
            0,
            phrasing.sentence_of(f"answer with {match.group(1).lower()} {match.group(2)}")
            if not set(words(plain(match.group(2)))[:1]) & lex.MANNERS
            and not match.group(2).endswith(("ly", "ful", "al", "ise"))
            else phrasing.sentence_of(f"make the answer {match.group(1).lower()} {match.group(2)}"),
        ),
    ),
    (frames.COMPARATIVE, lambda match: (0, f"Give a {match.group(1).lower()} answer.")),
)
