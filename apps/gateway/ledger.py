"""Carry the calls of many requests to the database together: one statement, one commit, one round trip.

A call waits for nobody: whatever came while the connections were busy goes with the next statement. Each call
sets its own tenant (see the functions' migration), so requests of several tenants may share one.
"""

import asyncio
import logging
import time
import uuid
from collections import deque
from typing import Any, Final, TypeVar

import orjson
import psycopg
from django.db import connection as django_connection
from psycopg.errors import DeadlockDetected, SerializationFailure

from apps.conversations.holders import NAMED_BY
from kernel.calls import Call, Plan
from kernel.errors import Unavailable
from kernel.postgres.errors import leave_out_rows

T = TypeVar("T")
_Waiting = tuple[Call, "asyncio.Future[dict[str, Any]]"]

logger = logging.getLogger(__name__)

_MOST_TOGETHER: Final = 32
# A database that restarts is back within seconds: waiting for it is kinder than failing.
PATIENCE_S: Final = 15.0


class Ledger:
    """A few connections to the database on the event loop, under the application's role and never another."""

    def __init__(self, *, connections: int, holder: uuid.UUID | None = None) -> None:
        """`holder`: the process that turns admitted here belong to."""
        self._holder = holder
        self._waiting: deque[_Waiting] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._lanes = [asyncio.get_running_loop().create_task(self._lane()) for _ in range(connections)]

    async def run(self, plan: Plan[T], *, heavy: bool = False) -> T:
        """Make the plan's calls. A `heavy` plan computes in a thread between them, off the event loop.

        Raises Unavailable where the database stays away, and what the plan raises.
        """
        answer: dict[str, Any] | None = None
        while True:
            step = await asyncio.to_thread(_step, plan, answer) if heavy else _step(plan, answer)
            if not isinstance(step, Call):
                return step[0]
            answer = await self._made(step)

    async def close(self) -> None:
        """End the connections. What was still waiting is refused."""
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        for _, future in self._waiting:
            _refuse(future, Unavailable("The server is stopping.", retry_after_s=1.0))

    def _made(self, asked: Call) -> "asyncio.Future[dict[str, Any]]":
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        while self._idle:
            lane = self._idle.popleft()
            if not lane.done():
                lane.set_result(None)
                break
        return future

    async def _lane(self) -> None:
        connection: psycopg.AsyncConnection[Any] | None = None
        try:
            while True:
                while not self._waiting:
                    woken = asyncio.get_running_loop().create_future()
                    self._idle.append(woken)
                    await woken
                batch = self._next()
                if batch:
                    try:
                        connection = await self._sent(connection, batch)
                    except asyncio.CancelledError:
                        for _, future in batch:
                            _refuse(future, Unavailable("The server is stopping.", retry_after_s=1.0))
                        raise
                    except Exception as error:
                        # a lane that ended would take the whole process with it
                        logger.exception("calls of %s failed", batch[0][0].function)
                        for _, future in batch:
                            _refuse(future, error)
        finally:
            if connection is not None:
                await connection.close()

    def _next(self) -> list[_Waiting]:
        """Take the oldest call and those of the same function; what nobody waits for any more is dropped."""
        batch: list[_Waiting] = []
        others: list[_Waiting] = []
        while self._waiting and len(batch) < _MOST_TOGETHER:
            one = self._waiting.popleft()
            if one[1].cancelled():
                continue
            if batch and one[0].function != batch[0][0].function:
                others.append(one)
            else:
                batch.append(one)
        self._waiting.extendleft(reversed(others))
        return batch

    async def _sent(
        self, connection: psycopg.AsyncConnection[Any] | None, batch: list[_Waiting]
    ) -> psycopg.AsyncConnection[Any] | None:
        """Send a batch until it is answered or the patience is over; returns the connection as it is then."""
        give_up, wait_s = time.monotonic() + PATIENCE_S, 0.05
        while True:
            try:
                if connection is None or connection.closed:
                    connection = await _connected(self._holder)
                await _answered(connection, batch)
                return connection
            except (psycopg.OperationalError, psycopg.InterfaceError, OSError) as error:
                if not isinstance(error, DeadlockDetected | SerializationFailure) and connection is not None:
                    await connection.close()
                if time.monotonic() + wait_s > give_up:
                    for _, future in batch:
                        _refuse(future, Unavailable("The ledger does not answer.", retry_after_s=2.0))
                    return connection
                logger.warning("the database went away (%s); trying again", type(error).__name__)
            except psycopg.Error as error:
                leave_out_rows(error)
                if len(batch) == 1:
                    _refuse(batch[0][1], error)
                    return connection
                # one of them is at fault and nothing was written: each by itself
                for one in batch:
                    connection = await self._sent(connection, [one])
                return connection
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, 2.0)


def _step(plan: Plan[T], answer: dict[str, Any] | None) -> "Call | tuple[T]":
    try:
        return next(plan) if answer is None else plan.send(answer)
    except StopIteration as end:
        return (end.value,)


async def _connected(holder: uuid.UUID | None) -> psycopg.AsyncConnection[Any]:
    known = django_connection.get_connection_params()
    for name in ("pool", "context", "cursor_factory", "prepare_threshold", "server_side_binding"):
        known.pop(name, None)
    connection = await psycopg.AsyncConnection.connect(
        **known,
        autocommit=True,
        prepare_threshold=0,
        connect_timeout=5,
        cursor_factory=psycopg.AsyncRawCursor,
    )
    await connection.execute("SELECT set_config($1, $2, false)", [NAMED_BY, str(holder or "")])
    return connection


async def _answered(connection: psycopg.AsyncConnection[Any], batch: list[_Waiting]) -> None:
    function = batch[0][0].function
    cursor = await connection.execute(
        f"SELECT {function}(asked)::text FROM jsonb_array_elements($1::jsonb) AS asked",  # noqa: S608
        ["[" + ",".join([one.asked.decode() for one, _ in batch]) + "]"],
    )
    for (_, future), (answer,) in zip(batch, await cursor.fetchall(), strict=True):
        if not future.done():
            future.set_result(orjson.loads(answer))


def _refuse(future: "asyncio.Future[dict[str, Any]]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
