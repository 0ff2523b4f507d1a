"""Intervals of means whose values come in clusters."""

from collections.abc import Sequence
from typing import Any

import pytest

from apps.evaluation.intervals import Clustered, Shared, of_difference, of_mean, student


def sums(clusters: Sequence[Sequence[float]]) -> Clustered:
    found = [(sum(one), len(one)) for one in clusters if one]
    return Clustered(
        clusters=len(found),
        n=sum(n for _, n in found),
        total=sum(total for total, _ in found),
        squares=sum(total * total for total, _ in found),
        cross=sum(total * n for total, n in found),
        n_squares=sum(n * n for _, n in found),
    )


def shared(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Shared:
    pairs = [(sum(a), len(a), sum(b), len(b)) for a, b in zip(one, other, strict=True)]
    return Shared(
        clusters=len(pairs),
        totals=sum(a * b for a, _, b, _ in pairs),
        total_n=sum(a * n for a, _, _, n in pairs),
        n_total=sum(m * b for _, m, b, _ in pairs),
        n_n=sum(m * n for _, m, _, n in pairs),
    )


@pytest.mark.parametrize(
    ("degrees", "expected"), [(4, 2.776445), (5, 2.570582), (10, 2.228139), (30, 2.042272)]
)
def test_students_points_are_those_of_the_tables(degrees: int, expected: float) -> None:
    assert student(degrees) == pytest.approx(expected, abs=1e-3)


def test_one_value_a_cluster_is_the_usual_interval() -> None:
    found = of_mean(sums([[1.0], [1.0], [1.0], [-1.0], [-1.0]]))
    assert found is not None
    # sd 1.09545, of the mean 0.48990, t(4) 2.77645
    assert (found.low, found.high) == pytest.approx((0.2 - 1.36017, 0.2 + 1.36017), abs=1e-3)


def test_the_same_word_twice_in_a_session_makes_nothing_surer() -> None:
    once = of_mean(sums([[1.0], [1.0], [1.0], [-1.0], [-1.0]]))
    assert of_mean(sums([[1.0] * 9, [1.0] * 9, [1.0] * 9, [-1.0] * 9, [-1.0] * 9])) == pytest.approx(once)


@pytest.mark.parametrize("clusters", [[], [[1.0]] * 4, [[1.0], [0.0], [1.0], [-1.0]], [[1.0]] * 50])
def test_too_little_or_all_alike_has_no_interval(clusters: Any) -> None:
    assert of_mean(sums(clusters)) is None


def test_a_difference_within_the_same_clusters_is_that_of_pairs() -> None:
    one, other = [[1.0], [-1.0], [1.0], [-1.0], [1.0]], [[1.0], [0.0], [1.0], [0.0], [0.0]]
    found = of_difference(sums(one), sums(other), shared(one, other))
    assert found is not None
    # differences 0, 1, 0, 1, -1: mean 0.2, sd 0.83666, of the mean 0.37417
    assert (found.low, found.high) == pytest.approx((0.2 - 1.03885, 0.2 + 1.03885), abs=1e-3)


def test_a_difference_of_others_adds_what_both_are_unsure_of() -> None:
    one: list[list[float]] = [*[[-1.0]] * 5, [1.0], *[[]] * 6]
    other: list[list[float]] = [*[[]] * 6, *[[1.0]] * 5, [-1.0]]
    found = of_difference(sums(one), sums(other), shared(one, other))
    assert found is not None
    # means -2/3 and 2/3; 12/11 counts the clusters' own covariance of nothing
    assert (found.low, found.high) == pytest.approx((4 / 3 - 1.21178, 4 / 3 + 1.21178), abs=2e-3)
    assert of_difference(sums(one), sums(other[:10]), shared(one, other)) is None
