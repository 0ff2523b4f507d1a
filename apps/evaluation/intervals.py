"""How sure a figure is: intervals of 95 %, each with its source."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

_Z = 1.959963984540054  # 97.5 % of the normal distribution
DRAWS = 2000
_NOTHING = 1e-12  # what rounding leaves of a variance of nothing


@dataclass(frozen=True, slots=True)
class Interval:
    """A lower and an upper bound."""

    low: float
    high: float


def wilson(passed: int, of: int) -> Interval:
    """Return the score interval of a proportion (Wilson 1927; recommended by Brown, Cai and DasGupta 2001).

    It takes the replies as independent. Nothing asked is anything from 0 to 1.
    """
    if of == 0:
        return Interval(0.0, 1.0)
    rate, square = passed / of, _Z * _Z
    centre = (rate + square / (2 * of)) / (1 + square / of)
    half = _Z / (1 + square / of) * math.sqrt(rate * (1 - rate) / of + square / (4 * of * of))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def bootstrap(
    clusters: Sequence[Sequence[float]],
    *,
    statistic: Callable[[Sequence[float]], float] = fmean,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval of a statistic of all values,
    whole clusters drawn with replacement.

    Several replies to one question are one cluster: they are alike, and as independent draws they would
    promise more than they hold (Efron and Tibshirani 1993, chapters 8 and 13). The same seed gives the same
    interval.
    """
    if not clusters:
        return Interval(0.0, 1.0)
    dice = random.Random(seed)  # noqa: S311
    found = sorted(
        statistic([value for cluster in dice.choices(clusters, k=len(clusters)) for value in cluster])
        for _ in range(draws)
    )
    return Interval(found[math.floor(0.025 * (draws - 1))], found[math.ceil(0.975 * (draws - 1))])


LEAST_CLUSTERS = 5
"""Fewer say too little: below four degrees of freedom `student` is off by more than a thousandth,
and the interval is wide."""


@dataclass(frozen=True, slots=True)
class Clustered:
    """Sums over clusters of values (a session's rewards):
    all that a mean and its interval need, however many there are."""

    clusters: int
    """Those with at least one value."""
    n: int
    total: float
    squares: float
    """Sum of each cluster's total, squared."""
    cross: float
    """Sum of each cluster's total times its number of values."""
    n_squares: float
    """Sum of each cluster's number of values, squared."""

    @property
    def mean(self) -> float | None:
        """The mean of all values."""
        return self.total / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Shared:
    """Sums over the clusters of two samples: a session that lived through a swap has values in both."""

    clusters: int
    """Those with a value in either."""
    totals: float
    """Sum of the products of both totals."""
    total_n: float
    """Sum of the first total times the second number."""
    n_total: float
    """Sum of the first number times the second total."""
    n_n: float
    """Sum of the products of both numbers."""


def student(degrees: int) -> float:
    """Return the 97.5 % point of Student's distribution (Abramowitz and Stegun 1964, 26.7.5),
    from 4 degrees of freedom."""
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, start=1))


def of_mean(values: Clustered) -> Interval | None:
    """Return the interval of a mean whose values come in clusters; None where they say too little for one.

    The variance is that of a ratio of sums over clusters (Cochran 1977, chapters 6 and 9A; with one value a
    cluster it is the usual one), in one pass over rows and without draws: `bootstrap` takes thousands, which
    a page has no time for. Values that are all alike have no spread to estimate from, and no interval.
    """
    if values.clusters < LEAST_CLUSTERS:
        return None
    return _around(_mean(values), _variance(values), values.clusters - 1)


def of_difference(one: Clustered, other: Clustered, shared: Shared) -> Interval | None:
    """Return the interval of the other's mean minus the one's;
    clusters that are in both count as what they are: alike."""
    least = min(one.clusters, other.clusters)
    if least < LEAST_CLUSTERS:
        return None
    first, second = _mean(one), _mean(other)
    together = (
        shared.totals - second * shared.total_n - first * shared.n_total + first * second * shared.n_n
    ) / (one.n * other.n)
    together *= shared.clusters / (shared.clusters - 1)
    return _around(second - first, _variance(one) + _variance(other) - 2 * together, least - 1)


def _mean(values: Clustered) -> float:
    return values.total / values.n


def _variance(values: Clustered) -> float:
    mean = _mean(values)
    spread = values.squares - 2 * mean * values.cross + mean * mean * values.n_squares
    return max(0.0, spread) / values.n**2 * values.clusters / (values.clusters - 1)


def _around(middle: float, variance: float, degrees: int) -> Interval | None:
    if variance <= _NOTHING:
        return None
    half = student(degrees) * math.sqrt(variance)
    return Interval(middle - half, middle + half)
