"""What the schedule is tried on: how long turns take, and when they come."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

SHORTEST_S, LONGEST_S = 2.0, 1800.0


@dataclass(frozen=True, slots=True)
class Load:
    """One policy's part of a trace."""

    tenant: str
    durations_s: Sequence[float] = ()
    """Of its rollouts, in the order in which they begin; as many at once as there are `slots`."""
    slots: int = 0
    """Rollouts at once: environments, or requests that an engine answers together."""
    arrivals: Sequence[tuple[float, float]] = field(default=())
    """Of its live turns: when each begins, and how long it takes until it is judged.

    They are always served.
    """


def heavy_tailed(count: int, *, seed: int, median_s: float = 20.0, sigma: float = 1.5) -> list[float]:
    """Return durations from 2 s to 30 min: log-normal, so that a few take most of the time.

    Drawn again where they fall outside, not cut: a pile at the bounds would be no tail.
    """
    chance = random.Random(seed)  # noqa: S311 - a trace is to be the same each time
    found: list[float] = []
    while len(found) < count:
        seconds = chance.lognormvariate(math.log(median_s), sigma)
        if SHORTEST_S <= seconds <= LONGEST_S:
            found.append(seconds)
    return found


def poisson(count: int, *, every_s: float, seed: int) -> list[float]:
    """Return when so many independent turns begin, on average one each `every_s` seconds."""
    chance = random.Random(seed)  # noqa: S311
    at, found = 0.0, []
    for _ in range(count):
        at += chance.expovariate(1.0 / every_s)
        found.append(at)
    return found
