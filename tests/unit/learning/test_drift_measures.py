"""The arithmetic of the gauges, with exact values."""

import math
import random
from collections import Counter
from typing import Any

import pytest

from apps.learning.drift.bounds import BOUNDS, BY_MEASURE, resolve
from apps.learning.drift.measures import (
    commonest,
    jensen_shannon,
    known,
    mean,
    median,
    repetition,
    total_variation,
)
from apps.learning.drift.topics import shift, topics_of
from kernel.errors import InvalidInput


def test_total_variation_is_the_share_that_must_be_moved() -> None:
    assert total_variation({"a": 3, "b": 1}, {"a": 1, "b": 3}) == 0.5
    assert total_variation({"a": 2}, {"a": 200}) == 0.0
    assert total_variation({"a": 2}, {"b": 5}) == 1.0
    assert total_variation({}, {"b": 5}) is None


def test_jensen_shannon_in_bits() -> None:
    assert jensen_shannon({1: 4, 2: 4}, {1: 1, 2: 1}) == 0.0
    assert jensen_shannon({1: 3}, {2: 9}) == 1.0
    # p = (1, 0), q = (1/2, 1/2), m = (3/4, 1/4): (log2(4/3) + (log2(2/3) + log2(2)) / 2) / 2
    expected = (math.log2(4 / 3) + 0.5 * math.log2(2 / 3) + 0.5) / 2
    assert jensen_shannon({1: 1}, {1: 1, 2: 1}) == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(0.3112781244591328)
    assert jensen_shannon({}, {1: 1}) is None


def test_repetition_counts_four_grams_that_stood_there_before() -> None:
    assert repetition([1, 2, 3, 4, 5, 6]) == 0.0
    assert repetition([1, 2, 3]) == 0.0
    assert repetition([7] * 8) == 0.8  # five 4-grams, one of them new
    assert repetition([1, 2, 3, 4, 1, 2, 3, 4]) == pytest.approx(1 - 4 / 5)


def test_the_small_ones() -> None:
    assert (mean([]), mean([1.0, 2.0])) == (None, 1.5)
    assert (median([]), median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0])) == (None, 2.0, 2.5)
    assert (commonest([]), commonest([1.0, 1.0, -1.0, 1.0])) == (None, 0.75)
    assert known({"a": 1.0, "b": None, "c": math.nan, "d": math.inf}) == {"a": 1.0}


def test_topics_are_content_words_whatever_their_case_and_form() -> None:
    one = topics_of("Please tell me about SOURDOUGH bread, the bread")
    assert one == topics_of("bread sourdough BREAD") == topics_of("ｂｒｅａｄ Bread, \u2018sourdough\u2019!")  # noqa: RUF001
    assert sum(one.values()) == 3
    assert topics_of("what would you have done about that 1234 x_y") == Counter()


def conversations(words: list[str], count: int, seed: int) -> list[Counter[int]]:
    chosen = random.Random(seed)
    return [topics_of(" ".join(chosen.choice(words) for _ in range(12))) for _ in range(count)]


BREAD = [
    "bread",
    "sourdough",
    "flour",
    "oven",
    "yeast",
    "crust",
    "knead",
    "proof",
    "starter",
    "rye",
    "wheat",
    "butter",
]
LAW = [
    "lawsuit",
    "contract",
    "clause",
    "tenant",
    "landlord",
    "deposit",
    "lease",
    "notice",
    "court",
    "appeal",
    "evidence",
    "damages",
]


def test_the_same_topics_are_no_shift_even_where_the_weeks_are_small() -> None:
    for seed in range(5):
        found = shift(conversations(BREAD, 12, seed), conversations(BREAD, 12, seed + 100), seed=7)
        assert found is not None
        assert found.divergence > 0.0
        assert found.excess < 0.02


def test_other_topics_are_a_shift_and_it_is_the_same_each_time() -> None:
    first = shift(conversations(BREAD, 30, 1), conversations(LAW, 30, 2), seed=7)
    again = shift(conversations(BREAD, 30, 1), conversations(LAW, 30, 2), seed=7)
    assert first == again
    assert first is not None
    assert first.divergence > 0.9
    assert first.excess > 0.7


def test_a_few_talkers_do_not_shift_what_a_week_speaks_of() -> None:
    """Words come in clumps: conversations are shuffled whole, so one long one is not taken for a trend."""
    before = conversations(BREAD, 20, 1)
    now = [*conversations(BREAD, 19, 2), topics_of("lawsuit contract clause tenant " * 5)]
    found = shift(before, now, seed=7)
    assert found is not None
    assert found.excess < 0.1


def test_too_few_conversations_say_nothing() -> None:
    assert shift(conversations(BREAD, 9, 1), conversations(LAW, 500, 2), seed=7) is None
    assert shift([Counter()] * 50, conversations(LAW, 50, 2), seed=7) is None


def test_every_bound_is_within_its_own_limits_and_said_once() -> None:
    assert len(BY_MEASURE) == len(BOUNDS) == 21
    for bound in BOUNDS:
        assert bound.low <= bound.limit <= bound.high, bound.measure
        assert bound.about
        assert bound.means
        assert bound.well_inside(bound.limit) == (bound.limit == 0.0), bound.measure
        assert not bound.crossed(bound.limit), bound.measure


def test_a_bound_says_what_it_means() -> None:
    assert BY_MEASURE["step_logprob_abs_diff"].words(2.345e-6, {"lr": 1e-5}) == (
        "the change of log-probabilities by the step is 2.34e-06 nats, under the bound of 0.001: "
        "≈ 0, the learning rate of 1e-05 is too low to learn anything"
    )


def test_a_crossing_ends_only_well_inside() -> None:
    over, under = BY_MEASURE["rollout_k3"], BY_MEASURE["ess"]
    assert [over.crossed(v) for v in (0.5, 0.51)] == [False, True]
    assert [over.well_inside(v) for v in (0.45, 0.4)] == [False, True]
    assert [under.crossed(v) for v in (0.4, 0.39)] == [False, True]
    assert [under.well_inside(v) for v in (0.45, 0.48)] == [False, True]
    below_zero = BY_MEASURE["reward_retention"]
    assert [below_zero.well_inside(v) for v in (-0.19, -0.16)] == [False, True]


@pytest.mark.parametrize(
    ("drift", "field"),
    [
        ([], "config.drift"),
        ({"nothing": {}}, "config.drift.nothing"),
        ({"ess": 0.5}, "config.drift.ess"),
        ({"ess": {"limit": 2}}, "config.drift.ess.limit"),
        ({"ess": {"limit": True}}, "config.drift.ess.limit"),
        ({"ess": {"limit": math.nan}}, "config.drift.ess.limit"),
        ({"ess": {"action": "explode"}}, "config.drift.ess.action"),
        ({"ess": {"in_a_row": 0}}, "config.drift.ess.in_a_row"),
        ({"ess": {"colour": 1}}, "config.drift.ess.colour"),
    ],
)
def test_a_wrong_override_is_named(drift: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolve({"drift": drift})
    assert refused.value.field == field


def test_a_policy_moves_its_bounds() -> None:
    found = resolve(
        {
            "drift": {
                "ess": {"limit": 0.5, "action": "fall_back", "in_a_row": 3},
                "repetition": {"action": "off"},
            }
        }
    )
    assert (found["ess"].limit, found["ess"].action, found["ess"].in_a_row) == (0.5, "fall_back", 3)
    assert "repetition" not in found
    assert found["rollout_k3"] == BY_MEASURE["rollout_k3"]


def test_a_platform_may_have_bounds_of_its_own_and_a_policy_others(settings: Any) -> None:
    settings.DRIFT_BOUNDS = {"step_k3": {"limit": 2.0}, "ess": {"action": "off"}}
    found = resolve({"drift": {"step_k3": {"action": "alert"}}})
    assert (found["step_k3"].limit, found["step_k3"].action) == (2.0, "alert")
    assert "ess" not in found
