"""Does an engine really answer with the adapter? Asked in log-probabilities, not in status codes.

Let A and B be the trainer's log-probabilities of fixed tokens with the adapter and of the bare base, and
E_A, E_B the engine's. A bf16 engine differs from a float32 trainer by 0.03-0.06 nats on average, which can be
more than a small adapter changes at all. So besides the distance |E_A - A| it is asked how far the engine
went in the direction in which the trainer's adapter goes, from its own base: share = <E_A - E_B, A - B> / |A
- B|². An adapter that is applied has a share near 1, one that is not has 0. In bf16 a small adapter loses
some of itself to rounding for good (a layer's output plus less than half of its last digit is the output):
the first steps of a 135M model measured 0.39-0.9, so a small change is held to less. Options under which an
engine would compute another scale are refused before it is asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apps.engines.client import EngineClient

_LEAST_SHARE = 0.5
_MOST_SHARE = 2.0
_LEAST_SHARE_IN_NOISE = 0.15
"""bf16 swallows a part of a change that is no larger than its own rounding: a first step of 0.083 nats on an
engine 0.045 nats from its float32 trainer measured a share of 0.39 (0.62 in transformers, 1.00 in float32);
one of
0.068 nats, 0.12 ± 0.07. What is within a standard error of the bound is not refused."""
_CLEAR = 4.0
"""How many times engine and trainer's distance on the base a change must be to be held to `_LEAST_SHARE`."""
_SHARP = 0.1
"""Standard error under which the share is believed."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the trainer measured on one sequence."""

    ids: list[int]
    logprobs: list[float]
    """With the adapter, nats, one fewer than `ids`."""
    base_logprobs: list[float]
    """Of the bare base."""

    @classmethod
    def listed(cls, rows: Sequence[Mapping[str, Any]]) -> "list[Expectation]":
        """Return the expectations of a manifest's `probe`. Raises ValueError where they are not whole."""
        found = [cls(list(row["ids"]), list(row["logprobs"]), list(row["base_logprobs"])) for row in rows]
        for one in found:
            if not len(one.logprobs) == len(one.base_logprobs) == len(one.ids) - 1 > 0:
                raise ValueError("a probe needs one log-probability fewer than ids, of both kinds")
        if not found:
            raise ValueError("no probe values")
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """What an engine answered on the same sequences."""

    adapter: list[list[float]]
    base: list[list[float]]
    base_again: list[float]
    """The first sequence once more: how much the engine differs from itself (other
    work changes its batches)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the adapter is what answers. Numbers in nats, means over all tokens."""

    passed: bool
    reason: str
    tokens: int
    change: float
    """mean |E_A - E_B|: what the adapter changes on this engine."""
    expected_change: float
    """mean |A - B|: what it should."""
    distance: float
    """mean |E_A - A|."""
    base_distance: float
    """mean |E_B - B|: how far engine and trainer are apart without any adapter."""
    noise: float
    """mean |E_B - E_B'|: the same question asked twice."""
    share: float | None
    share_error: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


async def measure(
    client: EngineClient, served_name: str, expected: Sequence[Expectation], *, timeout_s: float
) -> Measured:
    """Score the sequences on an engine, with the adapter and without."""
    adapter = [await client.score(one.ids, served_name, timeout_s=timeout_s) for one in expected]
    base = [await client.score(one.ids, None, timeout_s=timeout_s) for one in expected]
    again = await client.score(expected[0].ids, None, timeout_s=timeout_s)
    return Measured(adapter, base, again)


def judge(expected: Sequence[Expectation], measured: Measured, *, tolerance: float) -> Verdict:
    """Return whether the engine's answers are the adapter's. `tolerance`: nats, on `distance`."""
    a = [value for one in expected for value in one.logprobs]
    b = [value for one in expected for value in one.base_logprobs]
    e_a = [value for row in measured.adapter for value in row]
    e_b = [value for row in measured.base for value in row]
    if len(e_a) != len(a) or len(e_b) != len(a) or len(measured.base_again) != len(measured.base[0]):
        raise ValueError("the engine scored another number of tokens than the trainer")
    change, expected_change = _mean_distance(e_a, e_b), _mean_distance(a, b)
    distance, base_distance = _mean_distance(e_a, a), _mean_distance(e_b, b)
    noise = _mean_distance(measured.base[0], measured.base_again)
    share, error = _share(
        [x - y for x, y in zip(e_a, e_b, strict=True)], [x - y for x, y in zip(a, b, strict=True)]
    )
    sharp = share is not None and error is not None and error <= _SHARP
    reason = ""
    if not math.isfinite(distance):
        reason = "the engine's log-probabilities are not finite"
    elif expected_change == 0.0:
        reason = "the adapter changes nothing, says the trainer"
    elif change == 0.0 or (
        change <= 2.0 * noise and not (sharp and share is not None and share >= _LEAST_SHARE)
    ):
        reason = (
            f"the adapter changes nothing on this engine: {change:.4f} nats, and {noise:.4f} without it; "
            f"the trainer measured {expected_change:.4f}"
        )
    elif base_distance > tolerance:
        reason = f"the engine serves another base: {base_distance:.4f} nats apart, at most {tolerance:.4f}"
    elif distance > tolerance:
        reason = f"engine and trainer are {distance:.4f} nats apart, at most {tolerance:.4f}"
    elif (
        share is not None
        and error is not None
        and sharp
        and not _least(expected_change, base_distance) - error <= share <= _MOST_SHARE
    ):
        reason = (
            f"the engine applies {share:.2f} of the adapter's change ({change:.4f} nats, "
            f"the trainer measured {expected_change:.4f})"
        )
    return Verdict(
        passed=not reason,
        reason=reason,
        tokens=len(a),
        change=change,
        expected_change=expected_change,
        distance=distance,
        base_distance=base_distance,
        noise=noise,
        share=share,
        share_error=error,
    )


def _least(expected_change: float, base_distance: float) -> float:
    return _LEAST_SHARE if expected_change >= _CLEAR * base_distance else _LEAST_SHARE_IN_NOISE


def _mean_distance(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(abs(x - y) for x, y in zip(left, right, strict=True)) / len(left)


def _share(moved: Sequence[float], wanted: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the least-squares slope of `moved` on `wanted` and its standard error."""
    square = sum(value * value for value in wanted)
    if square == 0.0 or len(wanted) < 2:
        return None, None
    slope = sum(x * y for x, y in zip(moved, wanted, strict=True)) / square
    rest = sum((x - slope * y) ** 2 for x, y in zip(moved, wanted, strict=True))
    return slope, math.sqrt(rest / (len(wanted) - 1) / square)
