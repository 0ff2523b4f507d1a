"""What one gateway process holds: threads for the database, work in the background, a bound on requests."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from apps.conversations.holders import BEAT_S, beating
from apps.engines.client import engine_client
from apps.engines.slots import adapter_slots
from apps.gateway.ledger import PATIENCE_S, Ledger
from apps.gateway.metrics import Counters
from apps.keys.limits import Limits, Permit
from kernel.errors import RateLimited, Unavailable
from kernel.ids import uuid7

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

_CLOSE_S: Final = 5.0


class Slot:
    """One request's place among those that run, and the task that answers it.

    Releasing it twice does nothing.
    """

    def __init__(self, slots: set["Slot"]) -> None:
        self.task = asyncio.current_task()
        self.ends: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What ends a response that is still being sent."""
        self.permit: Permit | None = None
        """What the request may take; one, however often it looks whether its twin has ended."""
        self._limits: Limits | None = None
        self._slots = slots
        slots.add(self)

    def holds(self, limits: Limits, permit: Permit) -> None:
        """Give this permit back with the place; at once where that was given back already."""
        self._limits, self.permit = limits, permit
        if self not in self._slots:
            self._give_back()

    def release(self) -> None:
        """Give the place back, and the permit."""
        self._slots.discard(self)
        self._give_back()

    def _give_back(self) -> None:
        if self._limits is not None and self.permit is not None:
            limits, permit = self._limits, self.permit
            self._limits = self.permit = None
            limits.give_back(permit)


class Process:
    """Lives as long as the server.

    No request holds one of its threads, nor a connection, while it streams.
    """

    def __init__(
        self, *, connections: int, threads: int, most_running: int, redis_url: str, lease_s: float
    ) -> None:
        self._slots: set[Slot] = set()
        self._most_running = most_running
        self.id = uuid7()
        """Under which the turns that it answers are known to be held."""
        self.ledger = Ledger(connections=connections, holder=self.id)
        """What every request asks of the database."""
        self.limits = Limits(redis_url=redis_url, lease_s=lease_s)
        self.counters = Counters()
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="ledger")
        self._background: set[asyncio.Task[None]] = set()
        self._engines: set[str] = set()
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    def take_slot(self) -> Slot:
        """Return a place for one more request; raises RateLimited where none is left."""
        if len(self._slots) >= self._most_running:
            raise RateLimited(
                "This server has too many requests in work. Try again in a moment.",
                code="too_many_requests",
                retry_after_s=1.0,
            )
        return Slot(self._slots)

    @property
    def running(self) -> int:
        """How many requests are being answered."""
        return len(self._slots)

    async def database(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `call`, which reads or writes rows, in a thread with a connection of its own.

        Where the database went away it is run again on a new connection, for some seconds: so it must
        be one transaction, or harmless when repeated. Raises Unavailable when that did not help.
        """
        context = contextvars.copy_context()
        work = partial(_with_connection, partial(call, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` apart from the request, which may be cancelled at any moment."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)

    def uses_engine(self, url: str) -> None:
        """Remember to close the connections to this engine at the end."""
        self._engines.add(url)

    async def close(self) -> None:
        """End what still runs as if its client had left, finish what is in the background, end the threads.

        The server has waited for requests as long as it would; it cancels its own tasks then, of which
        those that answer are not part.
        """
        left = list(self._slots)
        tasks = [slot.task for slot in left if slot.task is not None and not slot.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        for slot in left:
            if slot.ends is not None:
                await slot.ends()
        if self._background:
            await asyncio.wait(self._background, timeout=_CLOSE_S)
        for url in self._engines:
            await engine_client(url).close()
        await adapter_slots().close()
        await self.limits.close()
        self._beating.cancel()
        await self.ledger.close()
        self._threads.shutdown()

    async def _beat(self) -> None:
        """Say again and again that this process is there; one that stops saying so loses its turns."""
        while True:
            try:
                await self.ledger.run(beating(self.id))
            except Exception:
                # whatever it was, silence would cost every running turn
                logger.exception("could not say that this process is there")
            await asyncio.sleep(BEAT_S)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)


def _with_connection(call: Callable[[], T]) -> T:
    give_up, wait_s = time.monotonic() + PATIENCE_S, 0.05
    while True:
        try:
            return call()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() + wait_s > give_up:
                raise Unavailable("The ledger does not answer.", retry_after_s=2.0) from error
            logger.warning("the database went away (%s); trying again", type(error).__name__)
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, 2.0)
