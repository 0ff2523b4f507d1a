"""For a five-year-old, in two sentences."""

import re

from apps.evaluation.rules.one_short_sentence import HEADING, LIST
from apps.evaluation.rules.verdict import Heard, Verdict, count_words, verdict_of
from apps.evaluation.sentences import is_finished, split_sentences

SENTENCES = 2
MAX_WORDS = 22
"""Of each sentence."""
MAX_LETTERS = 5.5
"""Of a word, on average; running English prose has about 4.7, an encyclopaedia more than 5.5."""
_WORD = re.compile(r"[^\W\d_]+")


def five_year_old(heard: Heard) -> Verdict:
    """Pass a reply that ended by itself: exactly two whole sentences of 2 to 22 words each, in short words."""
    reply = heard.text.strip()
    sentences = split_sentences(reply)
    sizes = [count_words(sentence) for sentence in sentences]
    words = _WORD.findall(reply)
    letters = sum(map(len, words)) / max(1, len(words))
    return verdict_of(
        heard,
        {
            "cut off": heard.finish_reason != "stop",
            "a list or a heading": bool(LIST.search(reply) or HEADING.search(reply)),
            "one sentence": len(sentences) < SENTENCES,
            "more than two sentences": len(sentences) > SENTENCES,
            "not a whole sentence": not all(map(is_finished, sentences)),
            "too many words": any(size > MAX_WORDS for size in sizes),
            "too few words": any(size < 2 for size in sizes),
            "long words": letters > MAX_LETTERS,
        },
    )
