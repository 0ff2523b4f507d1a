"""What is measured of a version, as plain data, and what follows from it: pure functions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

LEAST_GAIN = 0.01
"""Nats a token that a version must come closer to the teacher to count as better."""
GIVES = 0.05
"""Nats a token that may be lost where more replies pass."""
NEARLY = 0.9
"""Of the teacher's figure, where as much counts as the same."""
FALLEN = 0.7
"""Of the teacher's passes: fewer, and what was learned is told again."""
LARGEST_K3 = 3.0
"""Nats a token between a version and the base on the version's own replies."""
PROMISING = 0.75
"""Of the teacher's pass rate: where half of the questions reach it, the other half is asked too."""
TELLING = 3
"""Replies that must pass more with the wishes in the prompt than without,
or there is nothing to learn from them."""
NOT_TELLING = "the base does not do it either when it is told"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the replies of one version to the choosing questions are like; it was told nothing."""

    passes: int
    of: int
    """Replies that were written: to all of the questions, or to half of them."""
    closeness: float
    """Mean log-probability of the teacher's replies, nats a token."""
    on_topic: int
    looping: int
    empty: int
    mean_tokens: float
    k3: float
    """Of the version against the base on the version's own replies, nats a token."""
    general: int
    """Statements of the neutral set whose right ending is the likelier one."""
    general_of: int

    @property
    def written(self) -> int:
        """Return how many tokens the replies had."""
        return round(self.of * self.mean_tokens)

    def to_json(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return what `to_json` gave."""
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What the base does with the wishes in its prompt, and without."""

    threshold: float
    """A reply whose contrast is at least this passes, nats a token."""
    told: Measured
    untold: Measured

    @property
    def is_telling(self) -> bool:
        """Whether being told makes a difference that can be learned."""
        return self.told.passes >= self.untold.passes + TELLING


def contrast(with_wishes: Sequence[float], without: Sequence[float]) -> float:
    """Return by how much likelier the base finds a reply once it is told, nats a token."""
    return (sum(with_wishes) - sum(without)) / len(with_wishes)


def threshold_between(told: Sequence[float], untold: Sequence[float]) -> float:
    """Return the middle between the contrasts of told and of untold replies."""
    return (sum(told) / len(told) + sum(untold) / len(untold)) / 2


def k3(version: Sequence[float], base: Sequence[float]) -> float:
    """Return the mean k3 estimate (Schulman, "Approximating KL Divergence") on one reply, nats a token."""
    gaps = [min(b - v, 20.0) for v, b in zip(version, base, strict=True)]
    return sum(math.expm1(gap) - gap for gap in gaps) / len(gaps)


def what_was_lost(now: Measured, yardstick: Yardstick) -> str:
    """Return which guard a version breaks, or "".

    Each is relative to what the base does in as many replies.
    """
    told, untold = yardstick.told, yardstick.untold
    share = now.of / told.of
    longest = 1.5 * max(told.mean_tokens, untold.mean_tokens)
    guards = {
        "writes nothing": now.empty > max(told.empty, untold.empty) * share + 1,
        "repeats itself": now.looping > max(told.looping, untold.looping) * share + 1,
        "loses its topic": now.on_topic < NEARLY * min(told.on_topic, untold.on_topic) * share - 1,
        "writes far too long": now.mean_tokens > longest,
        "went too far from the base": now.k3 > LARGEST_K3,
        "knows less than the base": now.general < NEARLY * untold.general,
    }
    return "; ".join(name for name, broken in guards.items() if broken)


def why_not_better(now: Measured, best: Measured) -> str:
    """Return why a version is not better than the best so far, or "":
    closer to the teacher, or passing more often."""
    if now.closeness >= best.closeness + LEAST_GAIN:
        return ""
    if now.passes * best.of > best.passes * now.of and now.closeness >= best.closeness - GIVES:
        return ""
    return (
        f"no better than the best so far: {now.passes} of {now.of} pass at {now.closeness:.3f} nats a token,"
        f" {best.passes} of {best.of} at {best.closeness:.3f}"
    )


def is_promising(passes: int, of: int, yardstick: Yardstick) -> bool:
    """Return whether some of the replies pass so often that the others are worth writing."""
    return passes * yardstick.told.of >= PROMISING * yardstick.told.passes * of


def holds(now: Measured, yardstick: Yardstick) -> bool:
    """Return whether a version passes as often as the teacher, who is told;
    half of the questions do not show it."""
    whole = now.of >= yardstick.told.of
    return whole and yardstick.is_telling and now.passes >= NEARLY * yardstick.told.passes


def has_fallen(now: Measured, yardstick: Yardstick) -> bool:
    """Return whether a version passes so much less often than the teacher that it must be told again."""
    return now.passes * yardstick.told.of < FALLEN * yardstick.told.passes * now.of
