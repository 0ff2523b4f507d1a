"""One engine's slots, as one process uses them."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import redis

from apps.engines.replies import EngineBusy
from apps.engines.slots.counters import SlotCounters
from apps.engines.slots.rules import Claim, Decision, Rules, Standing, decide
from apps.engines.slots.shared import Look, SharedStandings

LINGER_S = 0.25
"""A slot whose last request ended is kept so long if nobody waits:
the policy's next turn then asks nobody."""
_ASK_EVERY_S = 0.02  # while something waits: another process may have freed a slot
_TELL_EVERY_S = 0.1  # while something is held: who waits elsewhere is learned, and that we live is told
_ALONE_S = 1.0  # after Redis did not answer, decide alone for so long
_TRIES = 5


@dataclass(slots=True)
class _Turn:
    tenant: str
    since: float
    running: int = 0
    pinned: int = 0
    """Those of the running that cannot be paused."""
    idle_since: float = 0.0


@dataclass(slots=True)
class _Queue:
    tenant: str
    waiters: deque[tuple[float, "asyncio.Future[None]"]] = field(default_factory=deque)


class Lane:
    """Lets requests enter while there is a slot for their adapter. Belongs to one event loop."""

    def __init__(
        self,
        engine: str,
        *,
        shared: SharedStandings | None,
        rules: Rules,
        counters: SlotCounters,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.engine = engine
        self._shared = shared
        self._rules = rules
        self._counters = counters
        self._clock = clock
        self._slots = 1
        self._turns: dict[str, _Turn] = {}
        self._queues: dict[str, _Queue] = {}
        self._contended = False
        self._due: frozenset[str] = frozenset()
        self._alone_until = 0.0
        self._others = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self, adapter: str, *, tenant: str, slots: int, within_s: float) -> None:
        """Return once a request of `adapter` may be sent; every entry needs one `leave`.

        Raises EngineBusy where that takes longer than `within_s`.
        """
        self._slots = max(1, slots)
        turn = self._turns.get(adapter)
        now = self._clock()
        young = turn is not None and now - turn.since < self._rules.turn_s
        if turn is not None and adapter not in self._queues and (young or not self._contended):
            turn.running += 1
            self._counters.joined.labels(self.engine).inc()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(adapter, _Queue(tenant)).waiters.append((now, future))
        self._look_soon()
        try:
            async with asyncio.timeout(within_s):
                await future
        except BaseException as error:
            if future.done() and not future.cancelled():
                self.leave(adapter)
            else:
                self._forget(adapter, future)
            if isinstance(error, TimeoutError):
                self._counters.refused.labels(self.engine).inc()
                raise EngineBusy(
                    "too many policies are in use at once; this one's turn did not come in time",
                    retry_after_s=2.0,
                ) from error
            raise
        self._counters.wait.labels(self.engine).observe(self._clock() - now)

    def leave(self, adapter: str) -> None:
        """Say that a request that entered has ended."""
        turn = self._turns[adapter]
        turn.running -= 1
        if turn.running == 0:
            turn.idle_since = self._clock()
            if self._contended or self._queues:
                self._wake.set()

    def pin(self, adapter: str, count: int = 1) -> None:
        """Say that one more (`count` -1: one fewer) of an adapter's running requests cannot be paused."""
        self._turns[adapter].pinned += count

    def due(self, adapter: str) -> bool:
        """Return whether an adapter's turn is asked back: somebody waits, and it has lasted."""
        return adapter in self._due

    @property
    def contended(self) -> bool:
        """Whether somebody, here or in another process, waits for a slot that is not there."""
        return self._contended

    @property
    def held(self) -> frozenset[str]:
        """The adapters that have a slot from this process, some perhaps idle."""
        return frozenset(self._turns)

    async def close(self) -> None:
        """Give everything back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._turns.clear()
        if self._shared is not None:
            try:
                await self._shared.tell(
                    Standing(), now=self._clock(), look=Look("", {}), only_if_unchanged=False
                )
            except (redis.RedisError, OSError):
                return  # it is forgotten by itself when it is told no more

    # --- below: looking at what the others do, and deciding

    def _look_soon(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_after())

    async def _look_after(self) -> None:
        while True:
            self._wake.clear()
            await self._exchange()
            self._counters.used.labels(self.engine).set(len(self._turns))
            self._counters.waiting.labels(self.engine).set(len(self._queues))
            if not self._turns and not self._queues:
                return  # with no await since they were looked at: who comes next starts a new task
            pause = _ASK_EVERY_S if self._queues else _TELL_EVERY_S
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _exchange(self) -> None:
        """Learn what others hold and wait for, take what is due to us, and tell them."""
        for _ in range(_TRIES):
            look = await self._look()
            now = self._clock()
            self._give_up(
                {name for name, turn in self._turns.items() if self._idle_for(turn, now) > LINGER_S}
            )
            decision = self._decide(look, now)
            if decision.contended or self._queues:
                self._give_up({name for name, turn in self._turns.items() if turn.running == 0})
                decision = self._decide(look, now)
            if await self._tell(look, decision, now):
                self._contended, self._due = decision.contended, decision.due
                self._grant(decision.granted, now)
                return

    def _decide(self, look: Look | None, now: float) -> Decision:
        others = [] if look is None else list(look.others.values())
        slots = self._slots if look is not None or self._shared is None else self._share()
        return decide(slots=slots, now=now, mine=self._standing(), others=others, rules=self._rules)

    def _share(self) -> int:
        """Return the slots to use while the other processes cannot be asked."""
        return max(1, self._slots // (1 + self._others))

    async def _look(self) -> Look | None:
        if self._shared is None or self._clock() < self._alone_until:
            return None
        try:
            look = await self._shared.look(self._clock())
        except (redis.RedisError, OSError):
            self._now_alone()
            return None
        self._others = len(look.others)
        return look

    async def _tell(self, look: Look | None, decision: Decision, now: float) -> bool:
        if self._shared is None or look is None:
            return True
        taken = decision.granted - self._turns.keys()
        standing = self._standing(granted=decision.granted, now=now)
        try:
            return await self._shared.tell(standing, now=now, look=look, only_if_unchanged=bool(taken))
        except (redis.RedisError, OSError):
            self._now_alone()
            return not taken

    def _now_alone(self) -> None:
        self._counters.alone.labels(self.engine).inc()
        self._alone_until = self._clock() + _ALONE_S

    def _standing(self, *, granted: frozenset[str] = frozenset(), now: float = 0.0) -> Standing:
        held = {
            name: Claim(turn.tenant, turn.since, pausable=turn.pinned == 0)
            for name, turn in self._turns.items()
        }
        for name in granted - held.keys():
            held[name] = Claim(self._queues[name].tenant, now)
        waiting = {
            name: Claim(queue.tenant, queue.waiters[0][0])
            for name, queue in self._queues.items()
            if name not in granted
        }
        return Standing(held, waiting)

    def _grant(self, names: frozenset[str], now: float) -> None:
        for name in names:
            queue = self._queues.pop(name, None)
            if queue is None:  # all who waited have left meanwhile
                continue
            turn = self._turns.setdefault(name, _Turn(queue.tenant, now))
            for _, future in queue.waiters:
                if not future.done():
                    future.set_result(None)
                    turn.running += 1

    def _give_up(self, names: set[str]) -> None:
        for name in names:
            del self._turns[name]

    def _forget(self, adapter: str, future: "asyncio.Future[None]") -> None:
        queue = self._queues.get(adapter)
        if queue is None:
            return
        queue.waiters = deque(waiter for waiter in queue.waiters if waiter[1] is not future)
        if not queue.waiters:
            del self._queues[adapter]

    @staticmethod
    def _idle_for(turn: _Turn, now: float) -> float:
        return now - turn.idle_since if turn.running == 0 else 0.0
