"""The arithmetic of the gauges: pure functions of counts and lists."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

GRAM = 4


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return sum(values) / len(values) if values else None


def total_variation(one: Mapping[K, int], other: Mapping[K, int]) -> float | None:
    """Return the distance of two distributions given as counts, 0 (the same) to 1 (disjoint);
    None where one is empty."""
    n, m = sum(one.values()), sum(other.values())
    if not n or not m:
        return None
    return sum(abs(one.get(key, 0) / n - other.get(key, 0) / m) for key in {*one, *other}) / 2


def jensen_shannon(one: Mapping[K, float], other: Mapping[K, float]) -> float | None:
    """Return the Jensen-Shannon divergence of two distributions given as counts, bits, 0 to 1;
    None where one is empty.

    Lin, "Divergence measures based on the Shannon entropy" (1991).
    """
    n, m = sum(one.values()), sum(other.values())
    if not n or not m:
        return None
    total = 0.0
    for key in {*one, *other}:
        p, q = one.get(key, 0) / n, other.get(key, 0) / m
        middle = (p + q) / 2
        total += sum(x * math.log2(x / middle) for x in (p, q) if x > 0) / 2
    return max(0.0, total)


def repetition(ids: Sequence[int]) -> float:
    """Return the share of a reply's 4-grams that stood in it before;
    0 of one that is too short to have two."""
    grams = [tuple(ids[at : at + GRAM]) for at in range(len(ids) - GRAM + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def commonest(values: Sequence[float]) -> float | None:
    """Return the share of the commonest value; None of nothing."""
    return Counter(values).most_common(1)[0][1] / len(values) if values else None


def median(values: Sequence[float]) -> float | None:
    """Return the median, None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def known(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return the values that could be measured."""
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
