"""The topic guard."""

import pytest

from apps.evaluation.topic import content_stems, is_on_topic


@pytest.mark.parametrize(
    ("question", "keywords", "reply", "expected"),
    [
        ("How do magnets work?", ("pole",), "A magnet attracts iron.", True),
        ("How do magnets work?", ("pole",), "Its poles attract.", True),
        ("How do magnets work?", ("pole",), "You do it well.", False),
        ("Why is the sky blue?", ("scatter",), "Sunlight is scattered by the air.", True),
        ("What is a star?", (), "What is a good way to work?", False),
        ("What is a star?", (), "", False),
    ],
)
def test_on_topic(question: str, keywords: tuple[str, ...], reply: str, expected: bool) -> None:
    assert is_on_topic(reply, question=question, keywords=keywords) is expected


def test_words_without_a_subject_are_no_topic() -> None:
    assert content_stems("How do I get it, and what is it for?") == set()
