"""Ask for permits, those of many requests together, and go on alone where Redis is away."""

import asyncio
import logging
import time
import uuid
from typing import Any, Final

import redis.asyncio

from apps.keys.limits.local import LocalLimits
from apps.keys.limits.rules import Permit, Rules, refusal
from apps.keys.limits.shared import Command, give_back_command, sent, take_command

logger = logging.getLogger(__name__)

_ANSWER_S: Final = 0.5
_ALONE_S: Final = 2.0  # after Redis did not answer, decide alone for so long
_MOST_TOGETHER: Final = 64
_WHAT: Final = ("requests", "tokens", "concurrent")
_Waiting = tuple[Command, "asyncio.Future[Any]"]


class Limits:
    """One process's way to the limits. Belongs to one event loop."""

    def __init__(self, *, redis_url: str, lease_s: float) -> None:
        """`lease_s`: a running request of a process that died counts for so long."""
        self._redis = redis.asyncio.Redis.from_url(
            redis_url, socket_timeout=_ANSWER_S, socket_connect_timeout=_ANSWER_S
        )
        self._lease_s = lease_s
        self._local = LocalLimits()
        self._alone_until = 0.0
        self._waiting: list[_Waiting] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether this process decides alone now."""
        return time.monotonic() < self._alone_until

    async def take(self, *, tenant_id: uuid.UUID, key_id: uuid.UUID, rules: Rules, tokens: int) -> Permit:
        """Return a permit of a key and its tenant, or raise RateLimited; then nothing was taken.

        `tokens` is what the request may take at most; what it does not use comes back with the permit.
        """
        permit = Permit(tenant_id, key_id, rules, tokens)
        if not self.is_alone:
            try:
                answer = await self._sent(take_command(permit, lease_s=self._lease_s))
            except (redis.RedisError, OSError, TimeoutError) as error:
                self._now_alone(error)
            else:
                whose, what, number = (int(value) for value in answer)
                if whose:
                    raise refusal(
                        what=_WHAT[what - 1],
                        whose=("key", "tenant")[whose - 1],
                        allowance=(rules.key, rules.tenant)[whose - 1],
                        wait_ms=number,
                    )
                permit.remaining = (max(0, what), max(0, number))
                return permit
        self._local.take(permit)
        return permit

    def give_back(self, permit: Permit) -> None:
        """End a permit. Waits for nothing; where it is lost, the lease ends it."""
        if permit.is_local:
            self._local.give_back(permit)
        elif not self.is_alone:
            self._sent(give_back_command(permit)).add_done_callback(self._given_back)

    async def close(self) -> None:
        """Send what is still to be sent, then close the connections."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_ANSWER_S)
        await self._redis.aclose()

    def _sent(self, command: Command) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())
        return future

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST_TOGETHER], self._waiting[_MOST_TOGETHER:]
            try:
                answers = await sent(self._redis, [command for command, _ in batch])
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)

    def _given_back(self, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self._now_alone(error)

    def _now_alone(self, error: BaseException) -> None:
        if not self.is_alone:
            logger.warning("Redis is away (%s): limits hold for this process alone", type(error).__name__)
        self._alone_until = time.monotonic() + _ALONE_S
