"""Ask an engine beside the requests of people: many replies at once, and all of them given up the moment somebody comes."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
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
AT_ONCE = 8
"""Fewer than the places of an engine: somebody who comes is not kept waiting for one."""


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
    go_on: Callable[[], bool],
) -> list[Answer]:
    """Return an answer to each prompt, in order. `sampling` has SGLang's names.

    `go_on` is asked every `LOOK_EVERY_S` seconds, in the caller's thread; once it says no the engine is told to stop and
    the answers are what was there by then. Raises what the engine's client raises.
    """
    answers = [Answer() for _ in prompts]

    async def work(client: EngineClient) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(prompt: Sequence[int], answer: Answer) -> None:
            async with places:
                source = client.generate(input_ids=prompt, sampling=sampling, adapter=adapter, stream=True)
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

        async with asyncio.TaskGroup() as group:
            for prompt, answer in zip(prompts, answers, strict=True):
                group.create_task(one(prompt, answer))

    _watched(url, work, go_on)
    return answers


def score_aside(
    *,
    url: str,
    asked: Sequence[tuple[str | None, Sequence[int], Sequence[int]]],
    go_on: Callable[[], bool],
) -> list[list[float]] | None:
    """Return the log-probability of each id of the reply, nats at T = 1, for each (adapter, prompt, reply); None where it was given up."""
    scores: list[list[float]] = [[] for _ in asked]

    async def work(client: EngineClient) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(index: int, adapter: str | None, prompt: Sequence[int], reply: Sequence[int]) -> None:
            async with places:
                scores[index] = await client.score([*prompt, *reply], adapter, first=len(prompt))

        async with asyncio.TaskGroup() as group:
            for index, (adapter, prompt, reply) in enumerate(asked):
                group.create_task(one(index, adapter, prompt, reply))

    return scores if _watched(url, work, go_on) else None


def _watched(url: str, work: Callable[[EngineClient], Any], go_on: Callable[[], bool]) -> bool:
    """Run `work` on an event loop in a thread of its own while this one looks out; returns whether it came to its end."""
    stop = threading.Event()

    async def run() -> bool:
        async with client_of(url) as client:
            working = asyncio.ensure_future(work(client))
            while not working.done():
                if stop.is_set():
                    working.cancel()
                    await asyncio.wait([working])
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
            while not wait([future], timeout=LOOK_EVERY_S).done:
                if not go_on():
                    stop.set()
        finally:
            stop.set()
        return future.result()
