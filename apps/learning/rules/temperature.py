"""How warm a policy samples by default, so that its rewards keep telling replies apart."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 4
"""Rewards under which a batch says nothing about saturation."""
SATURATED = 0.15
"""Variance of rewards in [-1, 1] below which replies are not told apart:
7 of 8 equal is 0.44, all equal 0."""
NOISY_ESS = 0.5
"""Effective sample size, as a fraction of the tokens, under which the ratios are mostly noise."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the tenant allows."""

    low: float
    high: float
    step: float
    """The most that one training step moves it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a training step showed."""

    rewards: Sequence[float]
    ess: float | None
    """Effective sample size of the importance weights, as a fraction; None where there was no ratio."""


@dataclass(frozen=True, slots=True)
class Move:
    """The new temperature, and why."""

    temperature: float
    reason: str


def adapt(temperature: float, seen: Seen, bounds: Bounds) -> Move:
    """Return the policy's next default temperature:
    cooler where ratios are noise, warmer where rewards are all alike.

    A temperature outside the bounds is brought within them first.
    """
    held = min(max(temperature, bounds.low), bounds.high)
    if seen.ess is not None and seen.ess < NOISY_ESS:
        return _moved(held, -bounds.step, bounds, f"noisy: effective sample size {seen.ess:.2f}")
    if len(seen.rewards) >= FEWEST:
        variance = statistics.pvariance(seen.rewards)
        if variance < SATURATED:
            return _moved(held, bounds.step, bounds, f"rewards are alike: variance {variance:.2f}")
    return Move(held, "" if held == temperature else "brought within the bounds")


def _moved(temperature: float, by: float, bounds: Bounds, reason: str) -> Move:
    return Move(round(min(max(temperature + by, bounds.low), bounds.high), 4), reason)
