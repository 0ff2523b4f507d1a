"""Durations counted by size, so that percentiles of many stretches can be had without their turns.

The buckets are those of DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch with
relative-error guarantees", VLDB 2019): bucket b holds what is above GAMMA^(b-1) and at most GAMMA^b, and stands for
2 GAMMA^b / (GAMMA + 1), which is within ERROR of everything in it.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

ERROR = 0.01
"""How far a percentile may be off, relative to the exact one."""
GAMMA = (1 + ERROR) / (1 - ERROR)
LEAST_MS, MOST_MS = 0.01, 1e9
"""What is shorter or longer counts as this: a hundredth of a millisecond, eleven days."""


def bucket_sql(column: str) -> str:
    """Return the SQL of the bucket of a column in milliseconds; NULL where that is."""
    within = (
        f"greatest({LEAST_MS}, least({MOST_MS:.0f}, {column}))"  # of a NULL they make one of their bounds
    )
    return f"CASE WHEN {column} IS NOT NULL THEN ceil(ln({within}) / {math.log(GAMMA)!r})::int END"


@dataclass(slots=True)
class Histogram:
    """How many durations fell into which bucket. Buckets are named as JSON has them, by text."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, counts: Mapping[str, int]) -> None:
        """Count what another histogram holds, too."""
        known = self.counts
        for bucket, count in counts.items():
            known[bucket] = known.get(bucket, 0) + count

    def percentiles(self, *shares: float) -> tuple[float | None, ...]:
        """Return the percentiles in milliseconds, None each where nothing was counted.

        Between two durations as Postgres' `percentile_cont` has it. Each is within ERROR of what that says of durations between
        LEAST_MS and MOST_MS: so are the two that it lies between.
        """
        if not self.counts:
            return (None,) * len(shares)
        rising = sorted(self.counts, key=int)
        seen = list(accumulate(map(self.counts.__getitem__, rising)))

        def at(place: int) -> float:
            """What stands at a place, counted from 0, in order of size."""
            return 2 * GAMMA ** int(rising[bisect_right(seen, place)]) / (GAMMA + 1)

        def between(place: float) -> float:
            low, high = at(math.floor(place)), at(math.ceil(place))
            return low + (high - low) * (place % 1)

        return tuple(between(share * (seen[-1] - 1)) for share in shares)
