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

from apps.engines.client import engine_client
from kernel.errors import RateLimited, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

# A database that restarts is back within seconds: waiting for it is kinder than failing.
_WAITS_S: Final = (0.0, 0.1, 0.5, 1.0, 2.0)


class Slot:
    """One request's place among those that run. Releasing it again does nothing."""

    def __init__(self, process: "Process") -> None:
        self._process: Process | None = process
        process.running += 1

    def release(self) -> None:
        """Give the place back."""
        if self._process is not None:
            self._process.running -= 1
            self._process = None


class Process:
    """Lives as long as the server. No request holds one of its threads, nor a connection, while it streams."""

    def __init__(self, *, threads: int, most_running: int) -> None:
        self.running = 0
        self._most_running = most_running
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="ledger")
        self._background: set[asyncio.Task[None]] = set()
        self._engines: set[str] = set()

    def take_slot(self) -> Slot:
        """Return a place for one more request; raises RateLimited where none is left."""
        if self.running >= self._most_running:
            raise RateLimited(
                "This server has too many requests in work. Try again in a moment.",
                code="too_many_requests",
                retry_after_s=1.0,
            )
        return Slot(self)

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
        """Finish what runs in the background, close connections and end the threads."""
        while self._background:
            await asyncio.wait(self._background, timeout=10)
        for url in self._engines:
            await engine_client(url).close()
        self._threads.shutdown()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)


def _with_connection(call: Callable[[], T]) -> T:
    for attempt, wait_s in enumerate(_WAITS_S, start=1):
        time.sleep(wait_s)
        try:
            return call()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if attempt == len(_WAITS_S):
                raise Unavailable("The ledger does not answer.", retry_after_s=2.0) from error
            logger.warning("the database went away (%s); trying again", type(error).__name__)
    raise AssertionError("unreachable")
