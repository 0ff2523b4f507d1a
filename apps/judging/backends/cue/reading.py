"""Cut what was said into sentences and clauses, and words into a shape that can be compared."""

import re
from dataclasses import dataclass
from functools import cached_property

from apps.judging.backends.cue import lexicon

_CONTRACTIONS = (
    (re.compile(r"\bcan't\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bcannot\b"), "can not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\blet's\b"), "let us"),
    (re.compile(r"\b(i|you|we|they|he|she|it|that)'d\b"), r"\1 would"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (
        re.compile(r"\b(it|that|this|there|what|who|where|how|why|here|he|she|everything|nothing)'s\b"),
        r"\1 is",
    ),
)
_COUNTED = re.compile(r"\b(one|two|three|four|five|single|half|short)-(\w)")  # "one-sentence"
_SENTENCE = re.compile(r"[^.!?\n…]+(?:\.(?=\d)[^.!?\n…]+)*[.!?…]*")
_CLAUSE = re.compile(
    r"\s*(?:[,:\u2013\u2014]+|;\s|\s-\s|\bbut\b|\bhowever\b|\bthough\b|\balthough\b|\bexcept\b|\bso (?=please|can|could|just|keep|try))\s*",
    re.IGNORECASE,
)
_RUN = re.compile(r"\s{3,}")
_CONTRAST = re.compile(r"\b(?:but|however|though|except)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9À-ɏ;]+(?:['-][a-z0-9À-ɏ]+)*", re.IGNORECASE)

# what speaks to a judge instead of the assistant: neither its score nor its hints may come from here
_ADDRESSES_THE_JUDGE = re.compile(
    r"\\?boxed\s*\{|\bjudge\b|\bverdict\b|\bgrader\b|\bevaluator\b|\bscore\b[^a-z]{0,12}-?\d|\bvote\b|\brubric\b|"
    r"[\"']score[\"']|\bscore\s+(?:must|should|is|of)\b|\bsystem\s*(?:prompt|message|:)|\bignore\b.*\binstructions?\b|"
    r"evidence-|end of evidence|</?\w*(?:state|hint|system|evidence|user|assistant)\w*>|<\|im_|\[/?inst\]|hint_(?:start|end)|"
    r"\boutput exactly\b|^\W*-?\d\W*$",
    re.IGNORECASE,
)
_FENCED = re.compile(r"```.*?(?:```|\Z)|\[\[.*?\]\]", re.DOTALL)


def plain(text: str) -> str:
    """Return text in lower case with straight apostrophes and contractions written out."""
    text = text.replace("\u2019", "'").replace("\u2018", "'").casefold()
    for pattern, long in _CONTRACTIONS:
        text = pattern.sub(long, text)
    return _COUNTED.sub(r"\1 \2", text)


def words(text: str) -> list[str]:
    """Return the words of plain text."""
    return _WORD.findall(text)


def stem(word: str) -> str:
    """Return a word without its commonest endings, so that "magnets" meets "magnet"."""
    for ending in ("ing", "ed", "es", "s"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def topic(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a text is about."""
    skip = lexicon.STOPWORDS | lexicon.VERBS
    return frozenset(stem(word) for word in words(plain(text)) if word not in skip and len(word) > 1)


@dataclass(frozen=True)
class Clause:
    """A part of a sentence that can carry a cue of its own."""

    text: str
    """As it was written."""
    contrasted: bool
    """Something after it takes it back: "nice, but …"."""
    asks: bool
    """Whether the sentence ends with a question mark."""
    introduces: bool
    """Whether a colon follows: what comes after it is what this clause speaks of."""

    @cached_property
    def plain(self) -> str:
        """In lower case, contractions written out."""
        return plain(self.text).strip()

    @cached_property
    def words(self) -> list[str]:
        """Its words."""
        return words(self.plain)


MOST_CHARACTERS = 4_000  # of what was said; of more, the beginning and the end are read
MOST_CLAUSES = 24  # of a sentence
LONGEST_WISH = 300  # characters of a sentence; who writes longer ones gives no instruction


def sentences(text: str) -> list[str]:
    """Return the sentences that speak to the assistant, as written; what addresses a judge is left out."""
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS * 3 // 4]}\n{text[-MOST_CHARACTERS // 4 :]}"
    text = _FENCED.sub(" ", text)
    found = [part.strip() for part in _SENTENCE.findall(text)]
    return [part for part in found if part.strip(" .!?;…") and not _ADDRESSES_THE_JUDGE.search(part)]


def clauses(text: str) -> list[Clause]:
    """Return the clauses of one sentence. A "but" weakens what stands before it."""
    text = _RUN.sub("  ", text)  # a long one is looked at again from each of its places
    asks = text.rstrip().endswith("?")
    turns = [match.start() for match in _CONTRAST.finditer(text)]
    last_turn = turns[-1] if turns else -1
    found: list[Clause] = []
    position = 0
    for part in _CLAUSE.split(text):
        position = max(text.find(part, position), position)
        if words(part):
            introduces = text[position + len(part) :].lstrip().startswith(":")
            found.append(Clause(text=part, contrasted=position < last_turn, asks=asks, introduces=introduces))
        position += len(part)
    return found[:MOST_CLAUSES]
