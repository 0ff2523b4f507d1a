"""Weigh what a user said after a reply: each clause adds cues, for and against.

The cues are general: praise and blame and their negations, excess ("too …"), wishes and directives about the
answer's form, requests to do it again, the same question asked again. What a new question or a new task says
of its own topic is no cue.
"""

import re
from collections.abc import Sequence

from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue import signs
from apps.judging.backends.cue.cues import Cue
from apps.judging.backends.cue.praise import negated, praise
from apps.judging.backends.cue.reading import Clause, clauses, plain, sentences, stem, topic, words
from apps.judging.backends.cue.subjects import Subjects, without_quotes

# stems of words that speak of answers, not of a topic
_OF_ANSWERS = frozenset(
    stem(word)
    for word in lex.FORMS
    | lex.FORM_VERBS
    | lex.WISHES
    | lex.THANKS
    | lex.ASSENT
    | lex.SUFFICE
    | lex.REDO
    | lex.BULK
)


_YOU_ERR = re.compile(r"\byou (?:\w+ )?(?:" + "|".join(sorted(lex.YOU_ERR)) + r")\b")


def weigh(said: str, *, asked: str, reply: str) -> list[Cue]:
    """Return the cues in what was said after `reply`, which answered `asked`."""
    said = without_quotes(said)
    known = topic(asked) | topic(reply)
    subjects = Subjects(said, asked=asked)
    found: list[Cue] = []
    for sentence in sentences(said):
        praised = False
        for clause in clauses(sentence):
            cues = (
                _before_the_task(clause)
                if subjects.elsewhere(clause)
                else _clause_cues(clause, known=known, asked=asked, praised=praised)
            )
            praised = praised or any(cue.weight > 0 for cue in cues)
            found.extend(_weakened(cues, clause))
    if _asks_again(said, asked):
        found.append(Cue("same question again", -2.5))
    if found and plain(said).count("?!") + plain(said).count("!?") + plain(said).count("??"):
        found.append(Cue("insistent punctuation", -0.5))
    return list({cue.name: cue for cue in reversed(found)}.values())[::-1]  # said often is said once


def is_new_task(clause: Clause, known: frozenset[str]) -> bool:
    """Whether a clause asks for something of its own: its words are about a topic, not about the reply."""
    text = signs.LEADING.sub("", clause.plain).replace("thank you", "thanks")
    found = words(text)
    first = found[0] if found else ""
    if (
        signs.JUST_RIGHT.search(clause.plain)
        or signs.REPROACH.search(text)
        or signs.FORBIDS.search(text)
        or signs.BE_SO.search(text)
        or signs.CALLS_ME.search(text)
        or signs.LEAVE_OUT.search(text)
        or signs.WHO_ASKED.search(text)
        or (first in lex.REDO and signs.IT.search(text))
    ):
        return False
    if clause.introduces and first in lex.VERBS - lex.FORM_VERBS:
        return True
    if first in lex.QUESTION_WORDS or (
        first in lex.AUXILIARIES and clause.asks and not signs.REQUEST.match(text)
    ):
        formal = bool(signs.IT.search(text)) and any(word in lex.FORMS for word in found)
        return not formal and not signs.ABOUT_REPLY.search(text)
    if first in lex.VERBS or signs.REQUEST.search(text):
        return bool(novel(text, known)) and not signs.ABOUT_REPLY.search(signs.REQUEST.sub("", text))
    return False


def novel(text: str, known: frozenset[str]) -> frozenset[str]:
    """Return the stems of a clause's topic words that neither the question nor the reply had.

    For whom an answer is meant and why it is wished for so are no topic.
    """
    how = signs.BECAUSE.sub(" ", signs.AUDIENCE.sub(" ", text))
    return topic(how) - _OF_ANSWERS - known


def speaks_of_form(clause: Clause, known: frozenset[str]) -> bool:
    """Whether a clause says how an answer should be: words of form, and no topic of its own."""
    formal = [word for word in clause.words if word in lex.FORMS]
    comparing = re.search(
        r"\b(?:more|less|fewer) (?:\w+ )?\w+|\b(?:be|make|sound|keep) (?:\w+ ){0,2}\w+er\b", clause.plain
    )
    if signs.AUDIENCE.search(clause.plain):
        formal.append("audience")
    if not formal and not (
        comparing and (clause.words[0] in lex.VERBS or signs.REQUEST.search(clause.plain))
    ):
        return False
    new = novel(clause.plain, known)
    about = bool(signs.ABOUT_REPLY.search(clause.plain) or signs.IT.search(clause.plain))
    return not new or (about and len(new) <= len(formal) + 1)


def _clause_cues(clause: Clause, *, known: frozenset[str], asked: str, praised: bool) -> list[Cue]:
    text = signs.GREETING.sub(" ", clause.plain)
    if _misses(signs.LEADING.sub("", text), asked):
        return [Cue("misses something", -1.5)]
    if is_new_task(clause, known):
        return _before_the_task(clause)
    found: list[Cue] = []
    found += praise(text)
    found += _blame(text, known=known)
    found += _wishes(clause, text, known, praised=praised or any(cue.weight > 0 for cue in found))
    return found


def _misses(text: str, asked: str) -> bool:
    """Whether a clause asks where that is which was asked for: "where is the number?"."""
    match = signs.WHERE_IS.search(text)
    return match is not None and (
        match.group(1) in lex.FORMS | lex.OF_A_REPLY or match.group(1) in words(plain(asked))
    )


def _before_the_task(clause: Clause) -> list[Cue]:
    """Return the cues of the words that lead over to a new question: "great, and …", "thanks, now …"."""
    leading = signs.LEADING.match(clause.plain)
    if leading is None:
        return []
    first = words(leading.group())
    if any(word in lex.PRAISE or word in lex.THANKS for word in first if word != "good" or len(first) == 1):
        return [Cue("thanks", 1.5)]
    return [Cue("assent", 0.5)] if any(word in lex.ASSENT for word in first) else []


def _blame(text: str, *, known: frozenset[str]) -> list[Cue]:
    rest = signs.NO_TROUBLE.sub(" ", text)
    tokens = words(rest)
    found = [*_degrees(rest, tokens), *_denials(rest, tokens, known)]
    if signs.CONFUSED.search(rest) or _first_of(lex.CONFUSION, tokens):
        found.append(Cue("confusion", -2.0))
    blame = _first_of(lex.BLAME, tokens)
    if blame:
        found.append(Cue(blame, -1.8))
    if _YOU_ERR.search(rest) and not signs.NEVER_FAILS.search(rest):
        found.append(Cue("you …", -1.8))
    if signs.SOUNDS_LIKE.search(text):
        found.append(Cue("sounds like", -1.8))
    if signs.REPROACH.search(text) or signs.WHO_ASKED.search(text):
        found.append(Cue("reproach", -1.8))
    return [*found, *_groans(tokens)]


def _degrees(text: str, tokens: Sequence[str]) -> list[Cue]:
    """Return the cues of too much and too little."""
    found: list[Cue] = []
    too, so = signs.EXCESS.search(text), signs.SO.search(text)
    if too:
        found.append(Cue(f"too {too.group(1)}", 1.0 if too.group(1) in lex.KIND else -2.0))
    if so and so.group(1) in lex.BULK | {"long", "formal", "complicated", "technical", "many"}:
        found.append(Cue(f"so {so.group(1)}", -1.5))
    if signs.MUCH.search(text):
        found.append(Cue("so much", -2.0))
    if any(token in lex.BULK for token in tokens):
        found.append(Cue("bulk", -1.5))
    if signs.LITTLE.search(text):
        found.append(Cue("too little", -2.0))
    return found


def _denials(text: str, tokens: Sequence[str], known: frozenset[str]) -> list[Cue]:
    """Return the cue of a "not" or "no" that is said of the reply."""
    if signs.NOT_IT.search(text) and not signs.JUST_RIGHT.search(text) and not signs.UNAWARE.search(text):
        return [Cue("not so", -1.8)]
    if signs.I_NOT.search(text) and "no longer" not in text:
        return [Cue("i do not", -1.8)]
    if tokens and tokens[0] in lex.NEGATIONS - {"without", "never", "hardly", "barely"}:
        return [Cue(tokens[0], -1.3)]
    return [Cue("denial", -1.8)] if signs.BE_NOT.search(text) and topic(text) & known else []


def _groans(tokens: Sequence[str]) -> list[Cue]:
    first = tokens[0] if tokens else ""
    found: list[Cue] = []
    if first in lex.GROANS:
        found.append(Cue(first, -1.5))
    elif any(token in lex.DOUBT for token in tokens):
        found.append(Cue("doubt", -0.6))
    if first in {"sorry", "still"}:
        found.append(Cue(first, -0.8))
    return found


def _first_of(kind: frozenset[str], tokens: Sequence[str]) -> str:
    """Return the first word of a kind that is not negated, or ""."""
    return next((t for i, t in enumerate(tokens) if t in kind and not negated(tokens, i)), "")


def _wishes(clause: Clause, text: str, known: frozenset[str], *, praised: bool) -> list[Cue]:
    found: list[Cue] = []
    form = speaks_of_form(clause, known) and not re.search(r"\bmore about\b", text)
    if (signs.STRONG_WISH.search(text) and not signs.JUST_RIGHT.search(text)) or (
        signs.WISH.search(text) and form and not signs.JUST_RIGHT.search(text)
    ):
        found.append(Cue("wish", -2.0))
    if signs.AGAIN.search(text) or any(word in lex.REDO for word in clause.words):
        found.append(Cue("again", -1.6))
    if signs.ELSE.search(text) and not signs.TOPIC_CHANGE.search(text):
        found.append(Cue("something else", -1.6))
    start = words(signs.LEADING.sub("", text))
    directive = bool(start) and (
        start[0] in lex.VERBS or bool(signs.REQUEST.search(text)) or "please" in clause.words
    )
    if form and directive:
        found.append(Cue("asks for another form", -2.0))
    elif form and (signs.SUFFICES.search(text) or signs.CONDITIONAL.search(text)):
        found.append(Cue("says what would do", -2.0))
    elif form and not praised and not _is_plain_question(clause):
        found.append(Cue("names a form", -1.5))
    elif signs.BE_SO.search(signs.LEADING.sub("", text)):
        found.append(Cue("asks for another manner", -1.8))
    elif signs.CALLS_ME.search(signs.LEADING.sub("", text)):
        found.append(Cue("asks for a name", -1.8))
    elif signs.LEAVE_OUT.search(signs.LEADING.sub("", text)):
        found.append(Cue("asks to leave out", -1.8))
    elif signs.FORBIDS.search(signs.LEADING.sub("", text)):
        found.append(Cue("forbids", -1.8))
    elif (
        directive
        and start[0] in lex.FORM_VERBS | {"check", "fix", "correct", "undo"}
        and re.search(r"\byour\b|\brepeat", text)
    ):
        found.append(Cue("asks for repair", -1.6))
    return found


def _is_plain_question(clause: Clause) -> bool:
    first = words(signs.LEADING.sub("", clause.plain))
    return bool(first) and first[0] in lex.QUESTION_WORDS and not signs.REPROACH.search(clause.plain)


_OTHERS = re.compile(r"\b(?:else|other|others|another|besides)\b")


def _asks_again(said: str, asked: str) -> bool:
    """Whether most of the topic of the question comes back, and little else."""
    before = topic(asked)
    for sentence in sentences(said):
        if _OTHERS.search(plain(sentence)):
            continue
        now = topic(sentence)
        shared = before & now
        if (len(shared) >= 2 or (len(before) == 1 and shared and _same_shape(sentence, asked))) and len(
            shared
        ) >= 0.6 * len(before | (now - _form_stems())):
            return True
    return False


def _same_shape(sentence: str, asked: str) -> bool:
    """Whether two short texts share most of all their words."""
    one, other = set(words(plain(sentence))), set(words(plain(asked)))
    return len(one & other) >= 0.6 * len(one | other)


def _form_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in lex.FORMS)


def _weakened(cues: list[Cue], clause: Clause) -> list[Cue]:
    if not clause.contrasted:
        return cues
    return [Cue(f"{cue.name}, taken back", round(0.3 * cue.weight, 2)) for cue in cues]
