"""What a complaint asks for, as an instruction that can stand after the question it was about.

The user's words are kept; only their frame is taken off ("I was hoping for …", "could you …", "… is plenty")
and, where a noun phrase is left, "Answer in …" or "Answer with …" is put before it.
"""

import re
from collections.abc import Callable, Sequence

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
from apps.judging.backends.cue.weighing import MUCH, is_new_task, speaks_of_form
from apps.judging.judge import MIN_HINT_CHARACTERS

MOST = 3  # instructions in one hint

_LEAD = re.compile(
    r"^(?:(?:next time|for next time|this time|from now on|in future|in the future|for the future|thank you|"
    r"good start|nice try|no offense|to be honest|come on|and|so|then|now|also|ok|okay|oh|ah|well|please|pls|but|hey|look|sorry|"
    r"maybe|perhaps|instead|great|thanks|hmm+|hm+|um|erm|ugh|meh|however|no(?=\s*[,.;:!\u2013\u2014-])|nope|nah|yes|yep|yeah|honestly|actually|seriously|whoa|wow|try again|again)"
    r"(?:[\s,.:;!\u2013\u2014-]+|$))+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,;:\u2013\u2014-]*(?:\b(?:please|pls|instead|next time|this time|from now on|in future|in the future|ok|okay|thanks|thank you|for me|tops|here|"
    r"then|if possible|if you can|if you could|will you|would you|that is all|that's all|again|anyway|though|too)\b)?[\s.!?…,;:\u2013\u2014-]*$",
    re.IGNORECASE,
)
_PRONOUN = r"(?:it|that|this|them|the answer|an answer|your answer|the reply|your reply|a reply|the response|a response|something)"
_REQUEST = re.compile(
    r"^(?:(?:can't|won't|couldn't|wouldn't|can|could|would|will|may) you|i (?:need|want|would like|'d like) you to|do you think you could)\s+"
    r"(?:(?:please|just|maybe|perhaps|kindly|possibly|at least|not)\s+)*(.+)$",
    re.IGNORECASE,
)
_MIND = re.compile(r"^(?:(?:do|would) you )?mind ((\w+)ing\b.*)$", re.IGNORECASE)
_GET = re.compile(
    rf"^(?:can|could|may) (?:i|we) (?:please |just )*(?:get|have|see|do|try) (?:{_PRONOUN}\s+)?(.+)$",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^(?:all (?:that )?)?(?:i|we)(?:'d|'m|'ve)?\s+(?:(?:was|were|am|had|have|would|did|do|really|only|just|simply|actually|much|clearly|specifically|already|kind of|have to|think)\s+)*"
    r"(?:ask(?:ed)?|want(?:ed)?|hop(?:ing|ed)|expect(?:ed|ing)?|prefer(?:red)?|rather|need(?:ed)?|mean|meant|said|told you|requested|wish|like|liked|love|looking|have|see)\b"
    rf"\s*(?:for\b|to (?:get|have|see|read)\b|that\b)?[\s,:\u2013\u2014-]*(?:(?:you to|you (?:would|could))\s+)?(?:{_PRONOUN}\s+(?=as |in |with |to be |without |only |just ))?(.+)$",
    re.IGNORECASE,
)
_YOU_PAST = re.compile(
    r"^you\s+(?:just\s+|only\s+|simply\s+)?(gave|used|wrote|kept|said|made|told|answered|put|listed)\b(.*)$",
    re.IGNORECASE,
)
_PRESENT = {
    "gave": "give", "used": "use", "wrote": "write", "kept": "keep", "said": "say", "made": "make",
    "told": "tell", "answered": "answer", "put": "put", "listed": "list",
}  # fmt: skip
_SUFFICES = re.compile(
    r"^(.+?)\s+(?:is|are|was|would|will|should|could|might|'s|'d|'ll)\s*(?:have\s+)?(?:be|been)?\s*(?:more than\s+|quite\s+|just\s+|already\s+|much\s+|a lot\s+)*"
    r"(?:plenty|enough|sufficient|fine|do|do it|do nicely|suffice|all (?:that )?(?:i|we)\b.*|what (?:i|we)\b.*|better|nice|nicer|great|good|perfect|ideal|lovely|helpful|more helpful|easier|preferable|appreciated|welcome|best)"
    r"(?:\s+(?:for (?:me|now|this|us)|to (?:read|follow|understand|use|digest)|really|thanks))*$",
    re.IGNORECASE,
)
_SHOULD_BE = re.compile(
    rf"^(?:{_PRONOUN}|your (?:answers|replies|responses)|answers|replies|you)\s+(?:should|could|must|ought to|needs? to|has to|have to|can)\s+(?:just\s+|only\s+)*(?:have\s+)?(?:be|been)\s+(.+)$",
    re.IGNORECASE,
)
_COULD_BE = re.compile(rf"^(?:can|could|should|may)(?:n't)? {_PRONOUN} be (.+)$", re.IGNORECASE)
_SHOULD = re.compile(
    r"^you (?:should|must|need to|have to|ought to)\s+(?:just\s+|only\s+|always\s+)*(?!have\b|be\b)(.+)$",
    re.IGNORECASE,
)
_ENOUGH = re.compile(r"^(.+?)\s+suffices?\b.*$", re.IGNORECASE)
_MY_ANSWERS = re.compile(r"^my (?:answers?|replies|reply|responses?) (.+)$", re.IGNORECASE)
_ALL_I = re.compile(r"^(.+?)\s+(?:is|was|'s)\s+all (?:that )?(?:i|we)\b.*$", re.IGNORECASE)
_TOO = re.compile(
    r"\b(?:too|overly|so|such an?|awfully|really|very)\s+(?:much\s+|many\s+)?([a-z-]+)", re.IGNORECASE
)
_FORGOT = re.compile(
    r"^you(?:'ve| have)?\s+(?:completely\s+|just\s+|again\s+)*(?:forgot|missed|left out|skipped|ignored|omitted|overlooked|didn't (?:say|mention|include)|did not (?:say|mention|include))\s+(.+)$",
    re.IGNORECASE,
)
_NOT_ENOUGH = re.compile(
    r"^(?:that is |it is |there is )?(?:not (?:nearly |quite )?enough|too little|too few) (.+)$",
    re.IGNORECASE,
)
_ITSELF = re.compile(
    r"^(make|keep|cut|trim|shorten|condense|simplify|format) (?:it|this|that)\b", re.IGNORECASE
)
_NO_MORE = re.compile(r"^(?:no|without|zero)\s+(?:more\s+|any\s+|so many\s+|so much\s+)?(.+)$", re.IGNORECASE)
_COMPARED = re.compile(
    r"^(?:(?:much|a bit|a little|way|far|even|slightly|a lot)\s+)?(more|less|fewer)\s+(.+)$", re.IGNORECASE
)
_COMPARATIVE = re.compile(
    r"^(?:(?:much|a bit|a little|way|far|even|slightly|a lot|something|make it)\s+)*(\w+er)(?:\s+(?:answers?|repl(?:y|ies)|responses?|ones?|version))?$",
    re.IGNORECASE,
)

_OPPOSITE = {
    "long": "shorter", "wordy": "shorter", "verbose": "shorter", "lengthy": "shorter", "many": "shorter", "much": "shorter",
    "detailed": "shorter", "repetitive": "shorter", "complicated": "simpler", "complex": "simpler", "technical": "simpler",
    "difficult": "simpler", "hard": "simpler", "advanced": "simpler", "confusing": "clearer", "vague": "more specific",
    "general": "more specific", "generic": "more specific", "short": "longer and more detailed", "brief": "longer and more detailed",
    "terse": "longer and more detailed", "formal": "less formal", "stiff": "less formal", "casual": "more formal",
}  # fmt: skip
_BULKY = {"long", "lengthy", "wordy", "verbose", "technical", "complicated", "formal"}  # alone, a complaint
_BASE = {"rewrite": "write", "redo": "do", "rephrase": "phrase", "reword": "word", "retry": "try"}
_ARTICLES = {
    "a",
    "an",
    "the",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "just",
    "only",
    "single",
    "some",
    "something",
    "at",
    "fewer",
    "less",
    "no",
    "any",
    "my",
    "under",
    "as",
    "in",
    "with",
    "to",
    "without",
    "by",
    "like",
    "for",
    "using",
}
_QUALIFIES = {"not", "no", "without", "just", "only", "more", "less", "fewer", "nothing"}
_PREPOSITIONS = {"for", "in", "with", "without", "as", "like", "by", "using", "to", "under", "at", "within"}


def wishes(said: str, *, asked: str) -> list[str]:
    """Return the hint that a complaint holds (one text of up to three instructions, the clearest first), or nothing."""
    found: list[tuple[int, str]] = []
    for sentence in sentences(said):
        if len(sentence) > LONGEST_WISH:
            continue
        wish = _of_sentence(sentence, known=topic(asked))
        if wish is not None and wish[1] not in [text for _, text in found]:
            found.append(wish)
    if any(rank == 0 for rank, _ in found):
        found = [wish for wish in found if wish[0] <= 1]
    found.sort(key=lambda wish: wish[0])
    if not found:
        return []
    hint = " ".join(text for _, text in found[:MOST])
    return [hint if len(hint) >= MIN_HINT_CHARACTERS else f"In your answer, {_lower(hint)}"]


def _of_sentence(sentence: str, *, known: frozenset[str]) -> tuple[int, str] | None:
    """Return (rank, instruction) of a sentence: 0 says what is wanted, 1 what is not, 2 follows from a degree, 3 corrects."""
    parts = clauses(sentence)
    for start, clause in enumerate(parts):
        rest = _strip(sentence[sentence.find(clause.text) :]) if start else _strip(sentence)
        if not rest or is_new_task(clause, known):
            continue
        made = _frame(rest, known) or _fragment(_phrase(parts[start:]), known)
        if made is not None and _says_something(made[1]):
            return made
    for take in (_degree, _omission):
        made = take(_strip(sentence), known)
        if made is not None:
            return made
    return _correction(sentence, known)


def _phrase(parts: Sequence[Clause]) -> str:
    """Return the first clause with those that only qualify it: "a summary, not an essay"."""
    taken = [_strip(parts[0].text)]
    if not taken[0]:
        return ""
    for clause in parts[1:]:
        if clause.words[0] not in _QUALIFIES:
            break
        taken.append(_strip(clause.text))
    return ", ".join(taken)


def _says_something(instruction: str) -> bool:
    """Whether an instruction names a form or a topic: "do it over" does not."""
    found = words(plain(instruction))
    if found[0] == "answer" or len(found) >= 6:
        return True
    return bool(set(found) & (lex.FORMS | lex.LANGUAGES) - {"better", "answer"}) or bool(topic(instruction))


def _frame(text: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Take the frame of a wish or a request off; None where there is none."""
    for pattern, make in _FRAMES:
        match = pattern.match(text)
        if match is not None:
            made = make(match, known)
            if made is not None:
                return 0, made
    first = words(plain(text))[:2]
    if first and first[0] in lex.VERBS and not is_question(text):
        return (
            1 if first[0] in {"stop", "avoid", "don't", "quit"} or first == ["do", "not"] else 0
        ), _imperative(text)
    return None


def _fragment(text: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Make an instruction of a phrase without a verb of its own that names a form: "shorter", "two sentences"."""
    if not text or is_question(text) or not _is_form(text, known):
        return None
    if plain(text) in _BULKY:
        return 2, f"Give a {_OPPOSITE[plain(text)]} answer."
    for pattern, make in _FRAGMENTS:
        match = pattern.match(text)
        if match is not None:
            return make(match)
    found = words(plain(text))
    if found[0] in _ARTICLES | lex.FORMS and not {"is", "are", "was", "were", "has", "have"} & set(found):
        return 0, answer_with(text)
    return None


def _degree(text: str, _known: frozenset[str]) -> tuple[int, str] | None:
    if MUCH.search(plain(text)):
        return 2, "Give a shorter answer."
    match = _TOO.search(plain(text))
    word = match.group(1) if match else next((w for w in words(plain(text)) if w in lex.BULK), "")
    if match is None and not word:
        return None
    manner = _OPPOSITE.get(word) or ("shorter" if word in lex.BULK else "")
    if manner:
        return 2, f"Give a {manner} answer."
    is_excess = match is not None and match.group().split()[0] in ("too", "overly") and word not in lex.KIND
    return (2, f"Give an answer that is less {word}.") if is_excess else None


def _omission(text: str, _known: frozenset[str]) -> tuple[int, str] | None:
    match = _FORGOT.match(text)
    return (1, _sentence(f"do not forget {match.group(1)}")) if match else None


def _correction(sentence: str, known: frozenset[str]) -> tuple[int, str] | None:
    """Keep a sentence that says how things are, for it corrects the reply."""
    text = _strip(sentence)
    found = words(plain(text))
    if (
        len(found) < 4
        or is_question(text)
        or found[0] in lex.AUXILIARIES | {"i", "you", "your", "this", "my"}
    ):
        return None
    empty = {stem(word) for word in lex.BLAME | lex.DOUBT | lex.PRAISE | lex.WISHES | lex.CONFUSION}
    return (3, _sentence(text)) if topic(text) - empty else None


def answer_with(phrase: str) -> str:
    """Return "Answer in/with …" of a noun phrase; a phrase that begins with a preposition keeps its own."""
    phrase = _strip(phrase)
    found = words(plain(phrase))
    if not found:
        return ""
    if found[0] in _PREPOSITIONS:
        return _sentence(f"answer {_lower(phrase)}")
    if found[0] in lex.VERBS - lex.FORMS and found[0] not in _ARTICLES:
        return _imperative(phrase)
    if len(found) <= 3 and found[-1] in lex.MANNERS and found[0] not in _ARTICLES:
        return _sentence(f"make the answer {_lower(phrase)}")
    mine = _MY_ANSWERS.match(phrase)
    if mine is not None:
        return _sentence(f"keep your answers {mine.group(1)}")
    if set(found) & {"answer", "answers", "reply", "response", "version", "explanation"}:
        return _sentence(f"give {_lower(phrase)}")
    head = found[
        : next(
            (i for i, w in enumerate(found) if i and w in {"that", "which", "of", "about", "not", "and"}),
            len(found),
        )
    ]
    preposition = "in" if set(head[:7]) & lex.UNITS else "with"
    return _sentence(f"answer {preposition} {_lower(phrase)}")


def is_question(text: str) -> bool:
    """Whether a text asks something of its own instead of asking for another answer."""
    found = words(plain(text))
    return bool(found) and found[0] in lex.QUESTION_WORDS


def _without_ing(text: str) -> str:
    """Return "trim it" of "trimming it", where the verb is a known one."""
    first, _, rest = text.partition(" ")
    for verb in lex.VERBS:
        if first.casefold() in (f"{verb}ing", f"{verb.removesuffix('e')}ing", f"{verb}{verb[-1]}ing"):
            return f"{verb} {rest}"
    return f"try {text}"


def _imperative(text: str) -> str:
    text = _ITSELF.sub(r"\1 your answer", _strip(text))
    first, _, rest = text.partition(" ")
    base = _BASE.get(first.casefold(), first)
    return _sentence(f"{base} {rest}".strip())


def _is_form(text: str, known: frozenset[str]) -> bool:
    return any(speaks_of_form(clause, known) for clause in clauses(text)[:1])


def _from_wish(match: re.Match[str], known: frozenset[str]) -> str | None:
    rest = _strip(match.group(match.lastindex or 1))
    past = _YOU_PAST.match(rest)
    if past is not None:
        return _sentence(_PRESENT[past.group(1).casefold()] + past.group(2))
    found = words(plain(rest))
    if not found or found[0] in {"i", "you", "was", "is", "not", "that"}:
        return None
    return answer_with(rest)


def _from_sufficiency(match: re.Match[str], known: frozenset[str]) -> str | None:
    phrase = _strip(match.group(1))
    found = words(plain(phrase))
    if (
        not found
        or found[0] in {"that", "this", "it", "which", "what", "i", "you", "they", "he", "she"}
        or not _is_form(phrase, known)
    ):
        return None
    return answer_with(phrase)


_FRAMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], frozenset[str]], str | None]], ...] = (
    (_MIND, lambda match, _known: _imperative(_without_ing(match.group(1)))),
    (_REQUEST, lambda match, _known: _imperative(match.group(1))),
    (_COULD_BE, lambda match, _known: answer_with(match.group(1))),
    (_SHOULD, lambda match, _known: _imperative(match.group(1))),
    (_ENOUGH, _from_sufficiency),
    (_GET, lambda match, _known: answer_with(match.group(1))),
    (_ALL_I, lambda match, _known: answer_with(match.group(1))),
    (_SHOULD_BE, lambda match, _known: answer_with(match.group(1))),
    (_SUFFICES, _from_sufficiency),
    (_WISH, _from_wish),
)
_FRAGMENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[int, str]]], ...] = (
    (_NOT_ENOUGH, lambda match: (0, _sentence(f"answer with more {match.group(1)}"))),
    (_NO_MORE, lambda match: (1, _sentence(f"answer without {_lower(_strip(match.group(1)))}"))),
    (
        _COMPARED,
        lambda match: (
            0,
            _sentence(f"answer with {match.group(1).lower()} {match.group(2)}")
            if not set(words(plain(match.group(2)))[:1]) & lex.MANNERS
            and not match.group(2).endswith(("ly", "ful", "al", "ise"))
            else _sentence(f"make the answer {match.group(1).lower()} {match.group(2)}"),
        ),
    ),
    (_COMPARATIVE, lambda match: (0, f"Give a {match.group(1).lower()} answer.")),
)


def _strip(text: str) -> str:
    """Return text without what leads to it and what politely ends it."""
    text = text.strip(" \t\n()[]*_,;:")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    text = _LEAD.sub("", text)
    before = None
    while before != text:
        before, text = text, _TAIL.sub("", text)
    return text.strip()


def _lower(text: str) -> str:
    first, _, rest = text.partition(" ")
    if first.casefold() in lex.LANGUAGES or first == "I" or (len(first) > 1 and first.isupper()):
        return text
    return f"{first[:1].lower()}{first[1:]} {rest}".strip()


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:].rstrip('.!?')}." if text else ""
