"""What a sample's age, counted in steps of the policy, does to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

FAINTEST = 1.0 / 16.0
"""A weight below this teaches nothing that is worth a place in the batch."""


@dataclass(frozen=True, slots=True)
class Staleness:
    """η, and what happens past it."""

    most: int
    """The largest staleness that counts fully, steps."""
    past: Literal["drop", "down_weight"] = "drop"
    """Past it a sample is dropped; or it counts half as much for each step more, until that is too little."""


def weight(staleness: int, rules: Staleness) -> float:
    """Return how much a sample counts in the loss: 1, less, or 0 where it is dropped."""
    over = staleness - rules.most
    if over <= 0:
        return 1.0
    if rules.past == "drop":
        return 0.0
    halved = 0.5**over
    return halved if halved >= FAINTEST else 0.0


def of_trajectory(turns: Sequence[int | None]) -> int | None:
    """Return the staleness of a rollout of several turns: its first turn's.

    None: it began on another branch.
    """
    return turns[0] if turns else None
