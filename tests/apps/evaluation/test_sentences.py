"""Counting sentences: what separates and what does not."""

import pytest

from apps.evaluation.sentences import is_finished, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("Plants turn light into sugar.", ["Plants turn light into sugar."]),
        ("It is hot. The sun shines!", ["It is hot.", "The sun shines!"]),
        ("It is hot.The sun shines.", ["It is hot.", "The sun shines."]),
        ("First line\nsecond line", ["First line", "second line"]),
        ("Dr. Smith et al. wrote it.", ["Dr. Smith et al. wrote it."]),
        ("J. K. Rowling wrote it. She is rich.", ["J. K. Rowling wrote it.", "She is rich."]),
        ("Eat vitamin C. It helps.", ["Eat vitamin C.", "It helps."]),
        ("It costs 3.5 dollars.", ["It costs 3.5 dollars."]),
        ("No. 5 is good.", ["No. 5 is good."]),
        ("The answer is no. Then go.", ["The answer is no.", "Then go."]),
        ("Light, water, etc. make it grow.", ["Light, water, etc. make it grow."]),
        ("Light, water, etc. Then wait.", ["Light, water, etc.", "Then wait."]),
        ("Come at 5 p.m. today.", ["Come at 5 p.m. today."]),
        ('He said "Stop!" and left.', ['He said "Stop!" and left.']),
        ("Well... maybe it is.", ["Well... maybe it is."]),
        ("Is it? yes.", ["Is it?", "yes."]),
        ("(It is so.) Then go.", ["(It is so.)", "Then go."]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("sentence", "finished"),
    [
        ("It is.", True),
        ('He said "yes."', True),
        ("Is it?", True),
        ("It is", False),
        ("It is:", False),
        ("", False),
    ],
)
def test_a_finished_sentence_ends_in_a_terminal_mark(sentence: str, finished: bool) -> None:
    assert is_finished(sentence) is finished
