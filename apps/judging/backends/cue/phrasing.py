"""Put a wish into words that can stand after a question, as close to the user's own as they can be."""

import re

from apps.judging.backends.cue import frames
from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue.reading import plain, words

_ADVERBS = re.compile(rf"^(?:(?:{'|'.join(sorted(frames.ADVERBS))})\s+)+", re.IGNORECASE)


def answer_with(phrase: str) -> str:
    """Return "Answer in/with …" of a noun phrase, or an order as it is; "" where a phrase is neither.

    A phrase that begins with a preposition keeps its own.
    """
    phrase = strip(phrase)
    found = words(plain(phrase))
    order = without_adverbs(phrase)
    if is_order(order):
        return imperative(order)
    mine = frames.MY_ANSWERS.match(phrase)
    it = frames.IT.match(phrase)
    keeps = it is not None and it.group(1).casefold() in lex.MANNERS  # "it brief"
    if not keeps and not is_noun_phrase(phrase):
        return ""
    before = "answer"
    if found[0] in frames.PREPOSITIONS:
        pass
    elif it is None and len(found) <= 3 and found[-1] in lex.MANNERS and found[0] not in frames.ARTICLES:
        before = "make the answer"
    elif it is not None and it.group(1).casefold() in lex.MANNERS:
        before, phrase = "keep your answer", it.group(1)
    elif mine is not None:
        before, phrase = "keep your answers", mine.group(1)
    elif set(found) & {"answer", "answers", "reply", "response", "version", "explanation"}:
        before = "give"
    else:
        before = f"answer {_preposition(found)}"
    return sentence_of(f"{before} {lower_first(phrase)}")


def is_noun_phrase(phrase: str) -> bool:
    """Whether "Answer with …" can stand before a phrase:
    no verb or pronoun leads it, none points elsewhere."""
    found = words(plain(phrase))
    while found and found[0] in frames.ADVERBS:
        found = found[1:]
    return (
        bool(found)
        and found != ["half"]
        and found[0] not in frames.NO_NOUNS
        and found[-1] not in {"that", "this", "it", "them", "those"}
    )


def without_adverbs(text: str) -> str:
    """Return "give me one line" of "just give me one line"."""
    return _ADVERBS.sub("", text)


def is_order(text: str) -> bool:
    """Whether a text begins with a verb that asks something of the assistant;
    "answer in French" does, "answers" do not."""
    found = words(plain(text))
    return bool(found) and (
        found[0] in lex.VERBS - lex.FORMS - frames.ARTICLES - frames.PREPOSITIONS
        or (found[0] in lex.VERBS and found[1:2] != [] and found[1] in frames.PREPOSITIONS)
    )


def _preposition(found: list[str]) -> str:
    """Return "in" for what an answer can be in (sentences, languages), else "with"."""
    ends = (i for i, word in enumerate(found) if i and word in {"that", "which", "of", "about", "not", "and"})
    head = found[: next(ends, len(found))]
    return "in" if set(head[:7]) & lex.UNITS else "with"


def is_question(text: str) -> bool:
    """Whether a text asks something of its own instead of asking for another answer."""
    found = words(plain(text))
    return bool(found) and found[0] in lex.QUESTION_WORDS


def without_ing(text: str) -> str:
    """Return "trim it" of "trimming it", where the verb is a known one."""
    first, _, rest = text.partition(" ")
    for verb in lex.VERBS:
        if first.casefold() in (f"{verb}ing", f"{verb.removesuffix('e')}ing", f"{verb}{verb[-1]}ing"):
            return f"{verb} {rest}"
    return f"try {text}"


def imperative(text: str) -> str:
    """Return an order as a sentence that can stand after another question,
    where no "it" is an earlier answer."""
    text = frames.ITSELF.sub(r"\1 your answer", strip(frames.REASON.sub("", text)))
    anew = frames.ANEW.match(text) or frames.TELL_ME.match(text)
    if anew is not None:
        joined, form = anew.groups()
        if joined.casefold() == "into":  # "into French", "into a list"
            joined = _preposition(words(plain(form)))
        elif joined.casefold() == "to":  # "to a child"
            joined = "for"
        return sentence_of(f"answer {joined} {form}")
    first, _, rest = text.partition(" ")
    base = frames.BASE.get(first.casefold(), first)
    return sentence_of(f"{base} {rest}".strip())


def strip(text: str) -> str:
    """Return text without what leads to it and what politely ends it."""
    text = text.strip(" \t\n()[]*_,;:")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    text = frames.LEAD.sub("", text)
    before = None
    while before != text:
        before, text = text, frames.TAIL.sub("", text)
    return text.strip()


def lower_first(text: str) -> str:
    first, _, rest = text.partition(" ")
    if first.casefold() in lex.LANGUAGES or first == "I" or (len(first) > 1 and first.isupper()):
        return text
    return f"{first[:1].lower()}{first[1:]} {rest}".strip()


def sentence_of(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:].rstrip('.!?')}." if text else ""
