"""The probe tells an adapter that answers from one that does not, on an engine that rounds."""

import random

import pytest

from apps.engines.probe import Expectation, Measured, judge

TOKENS = 200


def expectation(change: float, seed: int = 0) -> Expectation:
    """A trainer's values: an adapter that moves log-probabilities by about `change` nats."""
    chance = random.Random(seed)
    base = [-abs(chance.gauss(2.0, 1.0)) for _ in range(TOKENS)]
    return Expectation(list(range(TOKENS + 1)), [b + chance.gauss(0, change) for b in base], base)


def engine(
    expected: Expectation, *, applied: float, rounding: float, noise: float = 0.0, seed: int = 1
) -> Measured:
    """An engine that applies `applied` of the adapter; its rounding differs with every set of weights."""
    chance = random.Random(seed)
    base = [b + chance.gauss(0, rounding) for b in expected.base_logprobs]
    moved = [a - b for a, b in zip(expected.logprobs, expected.base_logprobs, strict=True)]
    again = chance if applied == 0 and noise == 0 else random.Random(seed + 1)
    adapter = (
        [b + chance.gauss(0, noise) for b in base]
        if applied == 0
        else [
            b + applied * m + again.gauss(0, rounding)
            for b, m in zip(expected.base_logprobs, moved, strict=True)
        ]
    )
    return Measured([adapter], [base], [b + chance.gauss(0, noise) for b in base])


@pytest.mark.parametrize("change", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("rounding", [0.0, 0.05])
def test_an_applied_adapter_passes_however_small(change: float, rounding: float) -> None:
    expected = expectation(change)

    verdict = judge([expected], engine(expected, applied=1.0, rounding=rounding), tolerance=0.15)

    assert verdict.passed, verdict.reason
    assert verdict.tokens == TOKENS
    assert verdict.share_error is not None
    if verdict.share_error <= 0.1:
        assert verdict.share == pytest.approx(1.0, abs=0.3)


def test_a_small_change_may_lose_a_part_to_the_engines_rounding() -> None:
    small, large = expectation(0.1), expectation(0.6)

    attenuated = judge([small], engine(small, applied=0.39, rounding=0.04), tolerance=1.0)
    too_weak = judge([large], engine(large, applied=0.39, rounding=0.04), tolerance=1.0)

    assert attenuated.passed, attenuated.reason
    assert not too_weak.passed
    assert "of the adapter's change" in too_weak.reason


def test_a_share_within_its_error_of_the_bound_is_not_refused() -> None:
    expected = expectation(0.07)
    verdicts = [
        judge([expected], engine(expected, applied=0.12, rounding=0.05, seed=seed), tolerance=1.0)
        for seed in range(1, 30)
    ]
    unsure = [one for one in verdicts if one.share and one.share_error and one.share < 0.15]

    assert len(unsure) >= 5
    for one in unsure:
        assert one.share is not None
        assert one.share_error is not None
        assert one.passed is (one.share + one.share_error >= 0.15), one.reason
    assert {one.passed for one in unsure} == {True, False}


@pytest.mark.parametrize("change", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_base_under_the_adapters_name_fails(change: float, noise: float) -> None:
    expected = expectation(change)

    verdict = judge([expected], engine(expected, applied=0.0, rounding=0.05, noise=noise), tolerance=1.0)

    assert not verdict.passed
    assert "changes nothing on this engine" in verdict.reason or "applies 0.0" in verdict.reason


@pytest.mark.parametrize("applied", [0.65, 0.9, 1.3])
def test_what_bfloat16_leaves_of_a_small_adapter_passes(applied: float) -> None:
    expected = expectation(0.1)

    assert judge([expected], engine(expected, applied=applied, rounding=0.05), tolerance=0.15).passed


@pytest.mark.parametrize("applied", [0.1, 4.0, -1.0])
def test_a_wrong_scale_fails(applied: float) -> None:
    expected = expectation(0.2)

    verdict = judge([expected], engine(expected, applied=applied, rounding=0.05), tolerance=10.0)

    assert not verdict.passed
    assert f"applies {verdict.share:.2f} of the adapter's change" in verdict.reason
    assert verdict.share == pytest.approx(applied, abs=0.15)


def test_another_base_is_named_as_such() -> None:
    expected = expectation(0.2)
    right = engine(expected, applied=1.0, rounding=0.0)
    wrong = [value - 1.0 for value in right.base[0]]

    verdict = judge(
        [expected], Measured([[value - 1.0 for value in right.adapter[0]]], [wrong], wrong), tolerance=0.15
    )

    assert verdict.reason == "the engine serves another base: 1.0000 nats apart, at most 0.1500"


def test_a_distance_over_the_tolerance_fails() -> None:
    expected = expectation(0.2)
    right = engine(expected, applied=1.0, rounding=0.0)
    shifted = [value + 0.2 for value in right.adapter[0]]

    verdict = judge([expected], Measured([shifted], right.base, right.base_again), tolerance=0.15)

    assert verdict.reason == "engine and trainer are 0.2000 nats apart, at most 0.1500"


def test_values_that_are_no_numbers_fail() -> None:
    expected = expectation(0.2)
    right = engine(expected, applied=1.0, rounding=0.0)
    nan = [float("nan")] * TOKENS

    assert "not finite" in judge([expected], Measured([nan], right.base, right.base[0]), tolerance=1.0).reason


def test_an_adapter_that_changes_nothing_by_the_trainers_own_words_fails() -> None:
    base = expectation(0.1).base_logprobs
    nothing = Expectation(list(range(TOKENS + 1)), base, base)

    assert "says the trainer" in judge([nothing], Measured([base], [base], base), tolerance=1.0).reason


@pytest.mark.parametrize(
    "rows",
    [[], [{"ids": [1, 2], "logprobs": [], "base_logprobs": [-1.0]}], [{"ids": [1], "logprobs": [], "base_logprobs": []}]],
)  # fmt: skip
def test_values_that_are_not_whole_are_refused(rows: list[dict[str, list[float]]]) -> None:
    with pytest.raises(ValueError, match="prob"):
        Expectation.listed(rows)
