"""What counts as better, as lost, as held and as fallen."""

from dataclasses import replace

import pytest

from apps.evaluation.choosing.figures import (
    Measured,
    Yardstick,
    contrast,
    has_fallen,
    holds,
    is_promising,
    k3,
    threshold_between,
    what_was_lost,
    why_not_better,
)

BASE = Measured(
    passes=1,
    of=16,
    closeness=-2.0,
    on_topic=15,
    looping=0,
    empty=0,
    mean_tokens=60.0,
    k3=0.0,
    general=15,
    general_of=16,
)
TOLD = replace(BASE, passes=14, closeness=0.0, mean_tokens=20.0)
STICK = Yardstick(threshold=0.2, told=TOLD, untold=BASE)


def test_a_reply_that_the_wish_makes_likelier_has_a_contrast() -> None:
    assert contrast([-1.0, -1.0], [-2.0, -2.0]) == 1.0
    assert threshold_between([0.6, 0.4], [0.1, -0.1]) == 0.25


def test_k3_is_zero_for_the_same_and_grows_both_ways() -> None:
    assert k3([-1.0, -2.0], [-1.0, -2.0]) == 0.0
    assert k3([-1.0], [-2.0]) == pytest.approx(0.3678794)
    assert k3([-2.0], [-1.0]) == pytest.approx(0.7182818)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({}, ""),
        ({"empty": 2}, "writes nothing"),
        ({"looping": 2}, "repeats itself"),
        ({"on_topic": 12}, "loses its topic"),
        ({"mean_tokens": 91.0}, "writes far too long"),
        ({"k3": 3.1}, "went too far from the base"),
        ({"general": 13}, "knows less than the base"),
        ({"empty": 3, "k3": 4.0}, "writes nothing; went too far from the base"),
    ],
)
def test_guards(change: dict[str, float], lost: str) -> None:
    assert what_was_lost(replace(BASE, **change), STICK) == lost


def test_better_is_closer_or_passes_more_often_for_a_little_less() -> None:
    best = replace(BASE, passes=4, closeness=-1.0)
    assert why_not_better(replace(best, closeness=-0.98), best) == ""
    assert why_not_better(replace(best, passes=5, closeness=-1.04), best) == ""
    assert why_not_better(replace(best, passes=5, closeness=-1.06), best) != ""
    assert why_not_better(best, best) == (
        "no better than the best so far: 4 of 16 pass at -1.000 nats a token, 4 of 16 at -1.000"
    )


def test_a_topic_that_the_base_loses_too_when_it_is_told_is_no_loss() -> None:
    wanders = replace(STICK, told=replace(TOLD, on_topic=10))
    assert what_was_lost(replace(BASE, on_topic=8), wanders) == ""
    assert what_was_lost(replace(BASE, on_topic=7), wanders) == "loses its topic"


def test_half_of_the_questions_are_held_against_half() -> None:
    half = replace(BASE, passes=0, of=8, on_topic=7)
    assert what_was_lost(half, STICK) == ""
    assert what_was_lost(replace(half, on_topic=5), STICK) == "loses its topic"
    best = replace(BASE, passes=4, closeness=-1.0)
    assert why_not_better(replace(half, passes=2, closeness=-1.0), best) != ""
    assert why_not_better(replace(half, passes=3, closeness=-1.0), best) == ""
    # the teacher passes 14 of 16: three quarters of that are 5.25 of 8
    assert not is_promising(5, 8, STICK)
    assert is_promising(6, 8, STICK)
    assert not holds(replace(half, passes=8), STICK)
    assert has_fallen(replace(half, passes=4), STICK)
    assert not has_fallen(replace(half, passes=5), STICK)


def test_held_and_fallen() -> None:
    assert not holds(replace(BASE, passes=12), STICK)
    assert holds(replace(BASE, passes=13), STICK)
    assert not has_fallen(replace(BASE, passes=10), STICK)
    assert has_fallen(replace(BASE, passes=9), STICK)
    # where the teacher itself passes half of the time, half of the questions still show nothing
    weak = replace(STICK, told=replace(TOLD, passes=8))
    assert not holds(replace(BASE, passes=8, of=8), weak)
    assert holds(replace(BASE, passes=8), weak)
    mute = replace(STICK, told=replace(TOLD, passes=3))
    assert not mute.is_telling
    assert not holds(TOLD, mute)
