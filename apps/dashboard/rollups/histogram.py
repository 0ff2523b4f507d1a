"""Durations counted by size, so that percentiles of many stretches can be had without their turns.

The buckets are those of DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch
with relative-error guarantees", VLDB 2019): bucket b holds what is above GAMMA^(b-1) and at most GAMMA^b, and
stands for 2 GAMMA^b / (GAMMA + 1), which is within ERROR of everything in it.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add

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
    """How many durations fell into each bucket from `first` on: two such lists add in one sweep."""

    first: int = 0
    counts: list[int] = field(default_factory=list)
    """Replaced, never changed: several histograms may share it."""

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> "Histogram":
        """Return the histogram of counts by bucket, named by text as JSON does."""
        by_bucket = {int(bucket): count for bucket, count in counts.items()}
        if not by_bucket:
            return cls()
        first = min(by_bucket)
        return cls(first, [by_bucket.get(bucket, 0) for bucket in range(first, max(by_bucket) + 1)])

    @classmethod
    def read(cls, written: Sequence[int]) -> "Histogram":
        """Return the histogram that was `written`."""
        return cls(written[0], list(written[1:])) if written else cls()

    @property
    def written(self) -> list[int]:
        """As it is kept: the first bucket, then the counts; nothing where nothing was counted."""
        return [self.first, *self.counts] if self.counts else []

    def add(self, other: "Histogram") -> None:
        """Count what another histogram holds, too."""
        if not other.counts:
            return
        if not self.counts:
            self.first, self.counts = other.first, other.counts
            return
        first, end = min(self.first, other.first), max(self.end, other.end)
        self.counts = list(map(add, self.between(first, end), other.between(first, end)))
        self.first = first

    @property
    def end(self) -> int:
        """The bucket after the last one."""
        return self.first + len(self.counts)

    def between(self, first: int, end: int) -> list[int]:
        """Return the counts of the buckets from `first` until just before `end`,
        which hold all of its own."""
        return [*[0] * (self.first - first), *self.counts, *[0] * (end - self.end)]

    def percentiles(self, *shares: float) -> tuple[float | None, ...]:
        """Return the percentiles in milliseconds, None each where nothing was counted.

        Between two durations as Postgres' `percentile_cont` has it. Each is within ERROR of what that says of
        durations between LEAST_MS and MOST_MS: so are the two that it lies between.
        """
        if not self.counts:
            return (None,) * len(shares)
        seen = list(accumulate(self.counts))

        def at(place: int) -> float:
            """What stands at a place, counted from 0, in order of size."""
            return 2 * GAMMA ** (self.first + bisect_right(seen, place)) / (GAMMA + 1)

        def between(place: float) -> float:
            low, high = at(math.floor(place)), at(math.ceil(place))
            return low + (high - low) * (place % 1)

        return tuple(between(share * (seen[-1] - 1)) for share in shares)
