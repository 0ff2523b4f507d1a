"""Ask an engine beside the requests of people:
many replies at once, and all of them given up the moment somebody comes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from apps.engines.client import EngineClient
from apps.engines.loading import client_of
from apps.engines.replies import EngineBroken

LOOK_EVERY_S = 0.1
"""How long somebody who comes shares the engine at most, until it is told to stop."""
_NOTICE_S = 0.02
MOST_AT_ONCE = 8
"""Fewer than the places of an engine: somebody who comes is not kept waiting for one."""

Room = Callable[[], int]
"""How many requests the engine may have beside people's, now; 0 once it is theirs."""


@dataclass(slots=True)
class Answer:
    """What an engine wrote to one prompt. `whole` is false where it was given up."""

    output_ids: list[int] = field(default_factory=list)
    output_logprobs: list[float] = field(default_factory=list)
    text: str = ""
    finish_reason: str = ""
    misaligned: str = ""
    whole: bool = False


def ask_aside(
    *,
    url: str,
    adapter: str | None,
    prompts: Sequence[Sequence[int]],
    sampling: Mapping[str, Any],
    room: Room,
) -> list[Answer]:
    """Return an answer to each prompt, in order. `sampling` has SGLang's names.

    `room` is asked every `LOOK_EVERY_S` seconds, in the caller's thread; once it says 0 the engine is told to
    stop and the answers are what was there by then. Raises what the engine's client raises.
    """
    answers = [Answer() for _ in prompts]

    async def one(client: EngineClient, index: int) -> None:
        answer = answers[index]
        source = client.generate(input_ids=prompts[index], sampling=sampling, adapter=adapter, stream=True)
        async with aclosing(source):
            async for chunk in source:
                answer.text += chunk.text
                answer.output_ids.extend(chunk.output_ids)
                answer.output_logprobs.extend(chunk.output_logprobs)
                answer.misaligned = chunk.misaligned
                answer.finish_reason = chunk.finish_reason or ""
        if answer.finish_reason == "abort":
            raise EngineBroken("the engine aborted the request")
        answer.whole = True

    _watched(url, len(prompts), one, room)
    return answers


def score_aside(
    *, url: str, asked: Sequence[tuple[str | None, Sequence[int], Sequence[int]]], room: Room
) -> list[list[float]] | None:
    """Return the log-probability of each id of the reply, nats at T = 1, for each (adapter, prompt, reply);
    None where it was given up."""
    scores: list[list[float]] = [[] for _ in asked]

    async def one(client: EngineClient, index: int) -> None:
        adapter, prompt, reply = asked[index]
        scores[index] = await client.score([*prompt, *reply], adapter, first=len(prompt))

    return scores if _watched(url, len(asked), one, room) else None


class _Places:
    """How many may be at work now, as the one who looks out says it to those who work."""

    def __init__(self, free: int) -> None:
        self.free = free


def _watched(url: str, count: int, one: Callable[[EngineClient, int], Awaitable[None]], room: Room) -> bool:
    """Do `one` for each index on an event loop in a thread while this one looks out;
    returns whether it came to its end."""
    places = _Places(room())

    async def place(number: int, client: EngineClient, left: list[int]) -> None:
        while left:
            if number < places.free:
                await one(client, left.pop())
            else:
                await asyncio.sleep(_NOTICE_S)

    async def work(client: EngineClient) -> None:
        left = list(reversed(range(count)))
        async with asyncio.TaskGroup() as group:
            for number in range(MOST_AT_ONCE):
                group.create_task(place(number, client, left))

    async def run() -> bool:
        async with client_of(url) as client:
            working = asyncio.ensure_future(work(client))
            while not working.done():
                if not places.free:
                    working.cancel()
                    # what broke in this moment is given up like the rest: nobody is told of it
                    await asyncio.gather(working, return_exceptions=True)
                    return False
                await asyncio.wait([working], timeout=_NOTICE_S)
            try:
                working.result()
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None
            return True

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="aside") as thread:
        future = thread.submit(asyncio.run, run())
        try:
            # once there was no room it is not asked again: whatever it says then, the work is given up
            while places.free and not wait([future], timeout=LOOK_EVERY_S).done:
                places.free = room()
        finally:
            places.free = 0
        return future.result()
