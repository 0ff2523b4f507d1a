"""What a gateway process asks before it sends a request to an engine."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache

import redis.asyncio
from django.conf import settings

from apps.engines.client import engine_client
from apps.engines.slots.counters import SlotCounters
from apps.engines.slots.lane import Lane
from apps.engines.slots.rules import BASE, Rules
from apps.engines.slots.shared import SharedStandings
from kernel.errors import AttuneError

Capacity = Callable[[str], Awaitable[int]]

WAIT_S = 60.0
"""A request whose policy gets no slot for so long is told to come back."""
_REDIS_S = 0.5
_ASK_AGAIN_S = 60.0
_ASK_SOON_S = 2.0
_FIRST_ANSWER_S = 1.0


class Seat:
    """One request's place in an engine's batch, given back and taken again while the request is paused."""

    def __init__(
        self, lane: Lane | None, name: str, enter: Callable[[], Awaitable[None]], least: int
    ) -> None:
        self.slice_tokens = least
        """So many tokens a request writes at least before it pauses."""
        self._lane = lane
        self._name = name
        self._enter = enter
        self._pinned = self._inside = False

    @property
    def contended(self) -> bool:
        """Whether somebody waits for a slot of this engine."""
        return self._lane is not None and self._lane.contended

    @property
    def asked_back(self) -> bool:
        """Whether this request's slot is wanted by somebody who has waited."""
        return self._lane is not None and self._lane.due(self._name)

    async def take(self) -> None:
        """Wait for the place. Raises EngineBusy where the turn does not come in time."""
        await self._enter()
        self._inside = True

    def pin(self) -> None:
        """Say that this request cannot be paused: its slot is not asked back before it has ended."""
        if self._lane is not None and not self._pinned:
            self._pinned = True
            self._lane.pin(self._name)

    def give_back(self) -> None:
        """Leave the place, for good or until it is taken again."""
        if self._inside and self._lane is not None:
            if self._pinned:
                self._lane.pin(self._name, -1)
            self._lane.leave(self._name)
        self._inside = self._pinned = False


class AdapterSlots:
    """The slots of all engines, as one process uses them. Belongs to one event loop."""

    def __init__(
        self,
        *,
        capacity: Capacity,
        redis_url: str | None,
        rules: Rules | None = None,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`capacity` says how many distinct adapters, the base among them, an engine batches.

        `redis_url` None: there is no other process that sends requests to these engines.
        """
        self.counters = SlotCounters()
        self._capacity = capacity
        self._known: dict[str, int] = {}
        self._asked_at: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
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
    async def seat(self, *, engine: str, adapter: str | None, tenant: uuid.UUID | str) -> AsyncIterator[Seat]:
        """Hold a place in an engine's batch while a request is sent there and answered.

        The bare base (None) takes a slot while any request uses it, as it does in the engine: so that many
        adapters fit without it, and one fewer beside it. The first requests to an engine wait until it has
        said its capacity, a second at most; one that has not said it yet is used as if all adapters fitted.
        Raises EngineBusy where the turn does not come in time. Who can neither pause nor say so by `pin` just
        holds on.
        """
        slots = await self._slots_of(engine)
        lane = self._lane(engine) if slots > 0 else None
        name, whose = (BASE, "") if adapter is None else (adapter, str(tenant))

        async def enter() -> None:
            if lane is not None:
                await lane.enter(name, tenant=whose, slots=slots, within_s=self._wait_s)

        seat = Seat(lane, name, enter, self._rules.slice_tokens)
        await seat.take()
        self._running[engine] += 1
        self.counters.requests.labels(engine, "base" if adapter is None else "adapter").inc()
        try:
            yield seat
        finally:
            self._running[engine] -= 1
            seat.give_back()

    def running(self, engine: str) -> int:
        """Return how many requests of this process an engine is working on. Safe from any thread."""
        return self._running[engine]

    def held(self, engine: str) -> frozenset[str]:
        """Return what has a slot of an engine from this process; `BASE` stands for the bare base."""
        lane = self._lanes.get(engine)
        return lane.held if lane is not None else frozenset()

    async def close(self) -> None:
        """Give all slots back and close the connections."""
        for task in self._asking.values():
            task.cancel()
        for lane in self._lanes.values():
            await lane.close()
        if self._redis is not None:
            await self._redis.aclose()

    async def _slots_of(self, engine: str) -> int:
        """Return what is known of an engine.

        It is asked anew now and then, and only the first time is waited for: else a process that starts under
        load would fill an engine's batch with replies that nothing can pause.
        """
        now = self._clock()
        if engine not in self._asking and now - self._asked_at.get(engine, 0.0) > _ASK_AGAIN_S:
            self._asked_at[engine] = now
            task = asyncio.get_running_loop().create_task(self._ask(engine))
            self._asking[engine] = task
            task.add_done_callback(lambda _: self._asking.pop(engine, None))
        if engine not in self._known and engine in self._asking:
            await asyncio.wait({self._asking[engine]}, timeout=_FIRST_ANSWER_S)
        return self._known.get(engine, 0)

    async def _ask(self, engine: str) -> None:
        try:
            self._known[engine] = await self._capacity(engine)
        except AttuneError:
            self._asked_at[engine] -= _ASK_AGAIN_S - _ASK_SOON_S  # what was known before still holds

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


async def _capacity_of(engine: str) -> int:
    return (await engine_client(engine).info()).max_loras_per_batch


@cache
def adapter_slots() -> AdapterSlots:
    """Return this process's slots, shared with the other processes through `REDIS_URL`."""
    return AdapterSlots(capacity=_capacity_of, redis_url=settings.REDIS_URL)
