"""One short sentence."""

import re

from apps.evaluation.rules.verdict import Heard, Verdict, count_words, verdict_of
from apps.evaluation.sentences import is_finished, split_sentences

MIN_WORDS = 2
MAX_WORDS = 25
# a number with a point or bracket opens an item anywhere, a dash or bullet only at the start of a line
LIST = re.compile(r"(?:^|\s)\d{1,2}[.)]\s+\S|^\s*[-*\u2022\u2013]\s+\S", re.MULTILINE)
HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|[^.!?\n]{1,60}:\s*$)", re.MULTILINE)


def one_short_sentence(heard: Heard) -> Verdict:
    """Pass a reply that ended by itself and is exactly one whole sentence of 2 to 25 words, no list, no heading."""
    reply = heard.text.strip()
    words = count_words(reply)
    sentences = split_sentences(reply)
    return verdict_of(
        heard,
        {
            "cut off": heard.finish_reason != "stop",
            "no sentence": not sentences,
            "a list or a heading": bool(LIST.search(reply) or HEADING.search(reply)),
            "several sentences": len(sentences) > 1,
            "not a whole sentence": not all(map(is_finished, sentences)),
            "too many words": words > MAX_WORDS,
            "too few words": words < MIN_WORDS,
        },
    )
