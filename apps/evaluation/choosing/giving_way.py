"""Measuring beside people: it lets go of the engine when somebody asks, and comes to its end all the same."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.engines.aside import LOOK_EVERY_S, Room
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
    """Room for one request at a time between people's, for what waited too long for a long silence.

    Once somebody asks, that one request is given up and asked again when nobody does; what was found is kept.
    Where all of that waiting comes to more than `patience_s` seconds, people never leave it a gap, and the
    rest is asked beside them, one request at a time.
    """

    def __init__(self, look: Room, *, patience_s: float) -> None:
        self._look, self._left_s = look, patience_s

    def __call__(self) -> int:
        """Return how many requests the engine may have now: none or one."""
        return min(self._look(), 1) if self._left_s > 0 else 1

    def wait(self) -> bool:
        """Wait for room; return False where there was nothing left to wait."""
        if self._left_s <= 0:
            return False
        began = time.monotonic()
        while self._left_s > time.monotonic() - began and not self._look():
            time.sleep(LOOK_EVERY_S)
        self._left_s -= time.monotonic() - began
        return True


def ask_all(
    asked: Sequence[Asked], room: Room, ask: Callable[[Sequence[Asked]], Sequence[Found] | None]
) -> list[Found]:
    """Return what `ask` finds for all of them, in order; it returns None where it was given up.

    They are asked at once, or one after the other where the room gives way. Raises Interrupted.
    """
    at_once = 1 if isinstance(room, GivesWay) else max(len(asked), 1)
    found: list[Found] = []
    for begin in range(0, len(asked), at_once):
        while (some := ask(asked[begin : begin + at_once])) is None:
            if not (isinstance(room, GivesWay) and room.wait()):
                raise Interrupted(MEANWHILE, retry_after_s=5.0)
        found += some
    return found
