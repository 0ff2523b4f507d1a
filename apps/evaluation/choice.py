"""Which version to keep, when to go back and when to stop: pure functions over validation scores.

The curve of a policy that learns overshoots, so the newest version is not always the best one. Versions are
compared on validation questions only; the held-out questions are asked once, of the version that was chosen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Score:
    """How many of a version's validation replies passed (and were on topic)."""

    passed: int
    of: int

    @property
    def rate(self) -> float:
        """Passed per asked; 0 where nothing was asked."""
        return self.passed / self.of if self.of else 0.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.passed + other.passed, self.of + other.of)


@dataclass(frozen=True, slots=True)
class Aims:
    """When the demo has what it wants. Rates are fractions of validation replies."""

    good: float = 0.75
    """Stop as soon as a version passes this often (and the swaps were enough)."""
    fair: float = 0.55
    """A plateau below this is no reason to stop."""
    fall: float = 0.3
    """Go back to the best version when the newest one is this much worse."""
    patience: int = 4
    """Versions without a better one that make a plateau."""
    swaps: int = 5
    """Swaps that must have happened."""


class Step(Enum):
    """What to do after a version was measured."""

    GO_ON = "go on"
    GO_BACK = "go back to the best version"
    STOP = "stop"


def best_version(scores: Mapping[int, Score]) -> int:
    """Return the version with the highest rate, the newest of equals; 0 where nothing was measured."""
    return max(scores, key=lambda number: (scores[number].rate, number), default=0)


def contenders(scores: Mapping[int, Score], *, count: int = 2) -> list[int]:
    """Return the best `count` trained versions, best first: they are measured again before one is kept."""
    trained = {number: score for number, score in scores.items() if number > 0}
    return sorted(trained, key=lambda number: (trained[number].rate, number), reverse=True)[:count]


def next_step(scores: Mapping[int, Score], *, newest: int, swaps: int, aims: Aims) -> Step:
    """Say what to do now that `newest` has been measured."""
    best = best_version(scores)
    if swaps >= aims.swaps:
        if scores[best].rate >= aims.good:
            return Step.STOP
        if scores[best].rate >= aims.fair and _since(scores, best) >= aims.patience:
            return Step.STOP
    if scores[newest].rate <= scores[best].rate - aims.fall:
        return Step.GO_BACK
    return Step.GO_ON


def _since(scores: Iterable[int], best: int) -> int:
    return sum(1 for number in scores if number > best)
