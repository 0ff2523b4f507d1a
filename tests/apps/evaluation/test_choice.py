"""Keeping the best version, going back, stopping."""

import pytest

from apps.evaluation.choice import Aims, Score, Step, best_version, contenders, next_step

AIMS = Aims(good=0.8, fair=0.6, fall=0.3, patience=3, swaps=5)


def scored(*passed: int) -> dict[int, Score]:
    return {number: Score(count, 20) for number, count in enumerate(passed, start=1)}


def test_the_newest_of_equals_is_best() -> None:
    assert best_version(scored(3, 9, 9, 2)) == 3
    assert best_version({}) == 0


def test_rates_are_compared_not_counts() -> None:
    assert best_version({1: Score(9, 12), 2: Score(12, 24)}) == 1


def test_contenders_leave_version_0_out() -> None:
    assert contenders({0: Score(20, 20), **scored(3, 9, 5)}) == [2, 3]
    assert contenders({}) == []


@pytest.mark.parametrize(
    ("passed", "swaps", "step"),
    [
        ((2,), 1, Step.GO_ON),
        ((2, 17), 2, Step.GO_ON),  # good, but too few swaps
        ((2, 5, 9, 12, 17), 5, Step.STOP),
        ((2, 5, 9, 12, 15), 5, Step.GO_ON),
        ((2, 12, 11, 10, 9), 5, Step.STOP),  # three versions without a better one
        ((2, 11, 11, 10, 9), 5, Step.GO_ON),  # a plateau that is too low to be content with
        ((2, 12, 6), 3, Step.GO_BACK),
        ((2, 12, 7), 3, Step.GO_ON),
    ],
)
def test_next_step(passed: tuple[int, ...], swaps: int, step: Step) -> None:
    assert next_step(scored(*passed), newest=len(passed), swaps=swaps, aims=AIMS) is step


def test_scores_add_up() -> None:
    assert Score(3, 12) + Score(5, 12) == Score(8, 24)
    assert Score(0, 0).rate == 0.0
