"""One short sentence."""

import pytest

from apps.evaluation.rules.one_short_sentence import one_short_sentence
from apps.evaluation.rules.verdict import Heard


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason", "words"),
    [
        ("Plants turn light into sugar.", "stop", "", 5),
        ("Plants turn light into sugar.", "length", "cut off", 5),
        ("Plants turn light into sugar.", None, "cut off", 5),
        ("", "stop", "empty", 0),
        ("...", "stop", "empty", 0),
        ("It is hot. The sun shines.", "stop", "several sentences", 6),
        ("Plants turn light into", "stop", "not a whole sentence", 4),
        ("Yes.", "stop", "too few words", 1),
        (" ".join(["word"] * 25) + ".", "stop", "", 25),
        (" ".join(["word"] * 26) + ".", "stop", "too many words", 26),
        ("1. Boil water", "stop", "a list or a heading", 3),
        ("Do this: 1) boil, 2) wait.", "stop", "a list or a heading", 6),
        ("- boil water", "stop", "a list or a heading", 2),
        ("# Tea\nBoil water.", "stop", "a list or a heading", 3),
        ("Here is how:\nBoil water.", "stop", "a list or a heading", 5),
        ("The war began in 1914 - a long time ago.", "stop", "", 9),
    ],
)
def test_one_short_sentence(text: str, finish_reason: str | None, reason: str, words: int) -> None:
    verdict = one_short_sentence(Heard(text, finish_reason=finish_reason))
    assert (verdict.passed, verdict.reason, verdict.words) == (reason == "", reason, words)
