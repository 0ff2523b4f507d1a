"""Replies that loop are found; replies that repeat as prose does are not."""

import random

import pytest

from apps.learning.degenerate import why_degenerate

PROSE = random.Random(1).choices(range(1000), k=200)


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([5] * 16, "degenerate: one token 16 times in a row"),
        ([*PROSE, *[7] * 20], "degenerate: one token 20 times in a row"),
        ([7, 8, 7, 9] * 8, "degenerate: one token is 16 of 32"),
        ([1, 2, 3] * 20, "degenerate: 3 tokens repeated through 60 of 60"),
        ([*PROSE[:30], *PROSE[50:70] * 5], "degenerate: 20 tokens repeated through 100 of 130"),
    ],
)
def test_a_loop_is_found_and_named(ids: list[int], reason: str) -> None:
    assert why_degenerate(ids) == reason


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [5],
        [5] * 7,
        PROSE,
        PROSE[:20] * 2,  # said twice
        [token for number in range(20) for token in (1, 2, 100 + number, 200 + number, 3)],  # a list
    ],
)
def test_ordinary_repetition_is_none(ids: list[int]) -> None:
    assert why_degenerate(ids) == ""
