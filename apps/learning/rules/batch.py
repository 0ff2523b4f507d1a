"""Which samples of a policy's queue make the next batch: strict, greedy or windowed FIFO.

The queue is in the order in which the turns *began*. Slow ones end late, so taking whatever ended first
teaches the policy mostly from short turns; waiting for the oldest lets one slow turn hold up everything.
Windowed FIFO is in between (MiniMax, "Forge: Scalable Agent RL Framework and Algorithm", 2026): whatever
ended may be taken among the W places from the oldest that is not consumed, and nothing beyond.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Key = TypeVar("Key", bound=Hashable)

Mode = Literal["strict", "greedy", "windowed"]
ANCHORED = 4
"""At least one in so many of a batch is the oldest that may be taken, whatever it has to say."""


@dataclass(frozen=True, slots=True)
class Order:
    """How a policy's queue is taken from."""

    mode: Mode
    window: int
    """Places from the oldest, for the windowed mode."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[Key]):
    """One place of the queue."""

    key: Key
    state: Literal["open", "ready", "done"]
    """Still being written or judged; may be taken;
    taken before (it keeps its place until it leaves at the head)."""
    ready_at: float = 0.0
    """When it became ready, seconds of any clock; orders the greedy mode."""
    signal: bool = True
    """Whether it moves the policy at all: its reward differs from what the policy is
    used to, or it has a hint."""


def window_size(buffer: int, fraction: float) -> int:
    """Return W = max(1, ⌊fN⌋) of a buffer of N."""
    return max(1, math.floor(fraction * buffer))


def take(queue: Sequence[Entry[Key]], order: Order, size: int) -> list[Entry[Key]]:
    """Return the batch of at most `size` from a queue in the order of its beginnings, itself in that order.

    Those with signal come before those without, but a quarter of the batch (rounded up) is the oldest
    whatever it has to say: so what stands at place k is taken within ⌈k / ⌈size / 4⌉⌉ batches, and nothing
    starves. Strict FIFO has no choice to make.
    """
    places = list(range(len(queue)))
    window = {"strict": 1, "greedy": len(queue), "windowed": order.window}[order.mode]
    if order.mode == "greedy":
        places = sorted(
            (place for place in places if queue[place].state == "ready"),
            key=lambda place: (queue[place].ready_at, place),
        )
    gone = {place for place in places if queue[place].state == "done"}
    anchored = math.ceil(size / ANCHORED)
    taken: list[int] = []
    head = 0
    while len(taken) < size:
        while head < len(places) and places[head] in gone:
            head += 1
        allowed = [
            place
            for place in places[head : head + window]
            if place not in gone and queue[place].state == "ready"
        ]
        if not allowed:
            break
        with_signal = (place for place in allowed if queue[place].signal)
        chosen = allowed[0] if len(taken) < anchored else next(with_signal, allowed[0])
        taken.append(chosen)
        gone.add(chosen)
    return [queue[place] for place in sorted(taken)]


def places_seen(order: Order, size: int) -> int:
    """Return how many places from the oldest on a batch of this size may come from,
    those that are done not counted."""
    return {"strict": size, "greedy": 4 * size, "windowed": order.window + size}[order.mode]
