"""Measuring beside people: it lets go of the engine when somebody asks, and comes to its end all the same."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.engines.aside import LOOK_EVERY_S, MOST_AT_ONCE, Room
from kernel.errors import Unavailable

HURRY_S = 120.0
"""A version that is so old, and can be measured, is measured between people's requests, one at a time."""
MEANWHILE = (
    "somebody asked meanwhile; it begins again once nobody asks, and a version that is "
    f"{HURRY_S / 60:.0f} minutes old goes on between people's requests"
)

Asked = TypeVar("Asked")
Found = TypeVar("Found")


class Interrupted(Unavailable):
    """Somebody asked, or what is measured by is not there yet. Measuring again later may work."""

    code = "interrupted"


class GivesWay:
    """Room between people's requests, for what waited too long for a long silence.

    Between them it is for one request at a time. Once somebody asks, that one is given up and asked again when nobody
    does; what was found is kept. Where all of that waiting comes to more than `patience_s` seconds, people never
    leave it a gap, and the rest is asked beside them. In a long silence it is for as many as the engine takes.
    """

    def __init__(self, look: Room, *, patience_s: float) -> None:
        self._look, self._left_s = look, patience_s
        self._at_once = 1

    def at_once(self) -> int:
        """Return how many requests to begin with now: all of them are lost when somebody asks."""
        self._at_once = MOST_AT_ONCE if self._look() >= MOST_AT_ONCE else 1
        return self._at_once

    def __call__(self) -> int:
        """Return how many requests the engine may have now; at least one once nothing is left to wait."""
        least = 1 if self._left_s <= 0 and self._at_once == 1 else 0
        return max(self._look(), least)

    def wait(self) -> None:
        """Wait for room while something is left to wait."""
        began = time.monotonic()
        while self._left_s > time.monotonic() - began and not self._look():
            time.sleep(LOOK_EVERY_S)
        self._left_s -= time.monotonic() - began


def ask_all(
    asked: Sequence[Asked], room: Room, ask: Callable[[Sequence[Asked]], Sequence[Found] | None]
) -> list[Found]:
    """Return what `ask` finds for all of them, in order; it returns None where it was given up.

    Where the room gives way, a part of them is asked at a time. Raises Interrupted where it does not.
    """
    found: list[Found] = []
    while len(found) < len(asked):
        gives_way = room if isinstance(room, GivesWay) else None
        at_once = gives_way.at_once() if gives_way else len(asked)
        some = ask(asked[len(found) : len(found) + at_once])
        if some is not None:
            found += some
        elif gives_way:
            gives_way.wait()
        else:
            raise Interrupted(MEANWHILE, retry_after_s=5.0)
    return found
