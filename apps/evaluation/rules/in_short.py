"""\"In short\" at the end."""

import re

from apps.evaluation.rules.verdict import Heard, Verdict, count_words, verdict_of
from apps.evaluation.sentences import split_sentences

MIN_WORDS = 3
"""In short, and at least this many words."""
_OPENS = re.compile(r"[\W_]*in short\b[\W_]*", re.IGNORECASE)


def in_short(heard: Heard) -> Verdict:
    """Pass a reply that ended by itself and whose last sentence begins with "In short", with a sentence before it."""
    sentences = split_sentences(heard.text)
    last = sentences[-1] if sentences else ""
    # "**In short:**" may stand on a line of its own, before the sentence that it opens
    if len(sentences) > 1 and (opened := _OPENS.fullmatch(sentences[-2])) is not None:
        sentences, last = sentences[:-1], f"{opened.group()} {last}"
    opens = _OPENS.match(last)
    return verdict_of(
        heard,
        {
            "cut off": heard.finish_reason != "stop",
            "nothing comes before the end": len(sentences) < 2,
            "does not end with In short": opens is None,
            "In short, and nothing": opens is not None and count_words(last[opens.end() :]) < MIN_WORDS,
        },
    )
