"""A fixed number of places at the engine, handed out by urgency, then by age."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """At most `places` holders at a time; a lower `urgency` number waits less."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []
        self._age = itertools.count()

    @asynccontextmanager
    async def hold(self, *, urgency: int) -> AsyncIterator[None]:
        """Wait for a place and keep it for the block."""
        await self._take(urgency)
        try:
            yield
        finally:
            self._give()

    async def _take(self, urgency: int) -> None:
        if self._free > 0:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (urgency, next(self._age), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was handed over in the same moment
                self._give()
            raise

    def _give(self) -> None:
        while self._queue:
            _, _, place = heapq.heappop(self._queue)
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
