"""What a gateway process asks before it sends a request to an engine."""

import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache

import redis.asyncio
from django.conf import settings

from apps.engines.slots.counters import SlotCounters
from apps.engines.slots.lane import Lane
from apps.engines.slots.rules import Rules
from apps.engines.slots.shared import SharedStandings

WAIT_S = 60.0
"""A request whose policy gets no slot for so long is told to come back."""
_REDIS_S = 0.5


class AdapterSlots:
    """The slots of all engines, as one process uses them. Belongs to one event loop."""

    def __init__(
        self,
        *,
        redis_url: str | None,
        rules: Rules | None = None,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`redis_url` None: there is no other process that sends requests to these engines."""
        self.counters = SlotCounters()
        self._process = uuid.uuid4().hex
        self._rules = rules or Rules()
        self._wait_s = wait_s
        self._clock = clock
        self._lanes: dict[str, Lane] = {}
        self._running: Counter[str] = Counter()
        self._redis = (
            redis.asyncio.Redis.from_url(redis_url, socket_timeout=_REDIS_S, socket_connect_timeout=_REDIS_S)
            if redis_url
            else None
        )

    @asynccontextmanager
    async def seat(
        self, *, engine: str, adapter: str | None, tenant: uuid.UUID | str, slots: int
    ) -> AsyncIterator[None]:
        """Hold a place in an engine's batch while a request is sent there and answered.

        `slots`: distinct adapters that the engine may have in flight besides the base; 0 if that is not known,
        then nobody waits. The base (None) needs no slot. Raises EngineBusy where the turn does not come in time.
        """
        lane = self._lane(engine) if adapter is not None and slots > 0 else None
        if lane is not None and adapter is not None:
            await lane.enter(adapter, tenant=str(tenant), slots=slots, within_s=self._wait_s)
        self._running[engine] += 1
        self.counters.requests.labels(engine, "base" if adapter is None else "adapter").inc()
        try:
            yield
        finally:
            self._running[engine] -= 1
            if lane is not None and adapter is not None:
                lane.leave(adapter)

    def running(self, engine: str) -> int:
        """Return how many requests of this process an engine is working on. Safe from any thread."""
        return self._running[engine]

    def held(self, engine: str) -> frozenset[str]:
        """Return the adapters that have a slot of an engine from this process."""
        lane = self._lanes.get(engine)
        return lane.held if lane is not None else frozenset()

    async def close(self) -> None:
        """Give all slots back and close the connections."""
        for lane in self._lanes.values():
            await lane.close()
        if self._redis is not None:
            await self._redis.aclose()

    def _lane(self, engine: str) -> Lane:
        if engine not in self._lanes:
            shared = (
                SharedStandings(self._redis, engine=engine, process=self._process)
                if self._redis is not None
                else None
            )
            self._lanes[engine] = Lane(
                engine, shared=shared, rules=self._rules, counters=self.counters, clock=self._clock
            )
        return self._lanes[engine]


@cache
def adapter_slots() -> AdapterSlots:
    """Return this process's slots, shared with the other processes through `REDIS_URL`."""
    return AdapterSlots(redis_url=settings.REDIS_URL)
