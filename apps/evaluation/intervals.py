"""How sure a figure is: intervals of 95 %, each with its source."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

_Z = 1.959963984540054  # 97.5 % of the normal distribution
DRAWS = 2000


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
    """Return the percentile bootstrap interval of a statistic of all values, whole clusters drawn with replacement.

    Several replies to one question are one cluster: they are alike, and as independent draws they would promise more
    than they hold (Efron and Tibshirani 1993, chapters 8 and 13). The same seed gives the same interval.
    """
    if not clusters:
        return Interval(0.0, 1.0)
    dice = random.Random(seed)  # noqa: S311
    found = sorted(
        statistic([value for cluster in dice.choices(clusters, k=len(clusters)) for value in cluster])
        for _ in range(draws)
    )
    return Interval(found[math.floor(0.025 * (draws - 1))], found[math.ceil(0.975 * (draws - 1))])
