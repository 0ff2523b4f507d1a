"""The client against an engine that behaves badly on order."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from apps.engines.client import EngineClient
from apps.engines.replies import (
    AdapterMissing,
    Chunk,
    EngineBroken,
    EngineBusy,
    EngineRejected,
    EngineUnavailable,
)
from kernel.errors import InvalidInput
from tests.fake_engine import FakeEngine
from tests.fake_generation import Token

IDS = [1, 5, 9]


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(api_key="normal", admin_key="admin") as engine:
        yield engine


def client_of(engine: FakeEngine, **keys: str) -> EngineClient:
    given = {"api_key": "normal", "admin_key": "admin"} | keys
    return EngineClient(engine.url, given["api_key"], given["admin_key"], vocab_size=49152, timeout_s=5.0)


async def collect(client: EngineClient, **more: Any) -> list[Chunk]:
    asked = {"input_ids": IDS, "sampling": {"max_new_tokens": 50}} | more
    return [chunk async for chunk in client.generate(**asked)]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_has_the_engines_own_tokens(engine: FakeEngine, stream: bool) -> None:
    async with client_of(engine) as client:
        chunks = await collect(client, stream=stream)

    assert "".join(chunk.text for chunk in chunks) == "One short sentence."
    assert [token for chunk in chunks for token in chunk.output_ids] == [2705, 1890, 6330, 30, 2]
    assert [value for chunk in chunks for value in chunk.output_logprobs] == [
        -0.5,
        -0.25,
        -0.125,
        -0.0625,
        -0.03125,
    ]
    assert (chunks[-1].finish_reason, chunks[-1].stopped_by, chunks[-1].misaligned) == ("stop", 2, "")
    (request,) = engine.requests
    assert (request.input_ids, request.adapter, request.headers["authorization"]) == (
        IDS,
        None,
        "Bearer normal",
    )


async def test_the_adapter_is_asked_for_by_lora_path(engine: FakeEngine) -> None:
    engine.adapters["p1-v1-aa"] = "/somewhere"
    async with client_of(engine) as client:
        await collect(client, adapter="p1-v1-aa")

    assert engine.requests[0].body["lora_path"] == "p1-v1-aa"
    assert "model" not in engine.requests[0].body  # a bare adapter name there is served by the base, silently


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_early_stops_the_engine_within_a_second(engine: FakeEngine, stream: bool) -> None:
    engine.say(*(" word" for _ in range(500)))
    engine.delay_s = 0.02
    async with client_of(engine) as client:
        task = asyncio.create_task(collect(client, stream=stream, sampling={"max_new_tokens": 500}))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = time.monotonic()
        while engine.requests[0].aborted is None and time.monotonic() < left + 1.0:
            await asyncio.sleep(0.01)

    assert engine.requests[0].aborted is not None
    assert engine.requests[0].sent < 100


async def test_leaving_after_the_first_chunk_stops_the_engine(engine: FakeEngine) -> None:
    engine.say(*(" word" for _ in range(500)))
    engine.delay_s = 0.02
    async with client_of(engine) as client:
        asked = {"input_ids": IDS, "sampling": {"max_new_tokens": 500}}
        async with aclosing(client.generate(**asked)) as chunks:
            async for _ in chunks:
                break

    assert engine.requests[0].aborted is not None


async def test_a_whole_reply_is_not_aborted_afterwards(engine: FakeEngine) -> None:
    async with client_of(engine) as client, aclosing(client.generate(input_ids=IDS, sampling={})) as chunks:
        async for chunk in chunks:
            if chunk.finish_reason:
                break

    assert (engine.requests[0].finished, engine.requests[0].aborted) == (True, None)


@pytest.mark.parametrize("fault", ["die_after", "fail_after"])
async def test_an_engine_that_fails_in_the_middle_is_broken_not_finished(
    engine: FakeEngine, fault: str
) -> None:
    setattr(engine, fault, 2)
    engine.delay_s = 0.02
    seen: list[Chunk] = []

    async def read(client: EngineClient) -> None:
        async for chunk in client.generate(input_ids=IDS, sampling={}):
            seen.append(chunk)  # noqa: PERF401 - what came before the end counts

    async with client_of(engine) as client:
        with pytest.raises(EngineBroken):
            await read(client)

    # frames that arrive together are one chunk
    assert "".join(chunk.text for chunk in seen) == "One short"
    assert {chunk.finish_reason for chunk in seen} == {None}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, EngineBusy), (500, EngineUnavailable), (503, EngineUnavailable), (400, EngineRejected)],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_keeps_its_meaning(
    engine: FakeEngine, status: int, kind: type[Exception], stream: bool
) -> None:
    engine.refuse_next(status)
    async with client_of(engine) as client:
        with pytest.raises(kind):
            await collect(client, stream=stream)


async def test_an_unknown_adapter_is_never_served_by_the_base(engine: FakeEngine) -> None:
    engine.adapters["p2-v7-bb"] = "/of/another/tenant"
    async with client_of(engine) as client:
        with pytest.raises(AdapterMissing) as refused:
            await collect(client, adapter="p1-v1-aa")

    assert "p2-v7-bb" not in refused.value.message


@pytest.mark.parametrize("ids", [[], [49152], [-1], [1, 10**9]])
async def test_ids_outside_the_vocabulary_never_reach_the_engine(engine: FakeEngine, ids: list[int]) -> None:
    async with client_of(engine) as client:
        with pytest.raises(InvalidInput):
            await collect(client, input_ids=ids)
        with pytest.raises(InvalidInput):
            await client.score(ids)

    assert engine.requests == []


async def test_several_replies_at_once_are_refused(engine: FakeEngine) -> None:
    async with client_of(engine) as client:
        with pytest.raises(InvalidInput):
            await collect(client, sampling={"n": 2})

    assert engine.requests == []


async def test_loading_is_idempotent_and_names_are_immutable(engine: FakeEngine) -> None:
    async with client_of(engine) as client:
        await client.load("p1-v1-aa", "/a")
        await client.load("p1-v1-aa", "/a")
        with pytest.raises(EngineRejected, match="another place"):
            await client.load("p1-v1-aa", "/b")
        assert await client.loaded() == {"p1-v1-aa": "/a"}
        await client.unload("p1-v1-aa")
        await client.unload("p1-v1-aa")
        assert await client.loaded() == {}


async def test_adapters_need_the_admin_key_and_generation_the_other(engine: FakeEngine) -> None:
    async with client_of(engine, admin_key="wrong") as client:
        with pytest.raises(EngineUnavailable):
            await client.load("p1-v1-aa", "/a")
    async with client_of(engine, api_key="wrong") as client:
        with pytest.raises(EngineUnavailable, match="key"):
            await collect(client)
    assert (engine.adapters, engine.requests) == ({}, [])


async def test_a_restart_changes_the_boot_id(engine: FakeEngine) -> None:
    async with client_of(engine) as client:
        first, again = await client.boot_id(), await client.boot_id()
        engine.boot += 1
        other = await client.boot_id()
        info = await client.info()

    assert first == again != other
    assert (info.model_path, info.max_loaded_loras, info.max_lora_rank) == ("fake", 8, 16)


async def test_scores_come_with_and_without_the_adapter(engine: FakeEngine) -> None:
    engine.adapters["p1-v1-aa"] = "/a"
    engine.score = lambda adapter, token: -float(token) - (0.5 if adapter else 0.0)
    async with client_of(engine) as client:
        assert await client.score([1, 5, 9]) == [-5.0, -9.0]
        assert await client.score([1, 5, 9], "p1-v1-aa") == [-5.5, -9.5]
        # the last of the vocabulary, which the engine calls 0
        assert await client.score([49151, 49151, 0]) == [-49151.0, 0.0]
        assert await client.score([1, 5, 9], first=2) == [-9.0]
        for first in (0, 4):
            with pytest.raises(InvalidInput):
                await client.score([1, 5, 9], first=first)


async def test_nobody_there_is_unavailable_and_not_ready(engine: FakeEngine) -> None:
    gone = EngineClient("http://127.0.0.1:9", vocab_size=10)
    async with gone:
        assert not await gone.ready()
        with pytest.raises(EngineUnavailable):
            await gone.info()
    engine.ready = False
    async with client_of(engine) as client:
        assert not await client.ready()


async def test_an_engine_that_hangs_is_unavailable_after_the_timeout(engine: FakeEngine) -> None:
    engine.hold = threading.Event()
    engine.reply = lambda _: (Token(7, "x"),)
    client = EngineClient(engine.url, "normal", "admin", vocab_size=10, timeout_s=0.3)
    async with client:
        with pytest.raises(EngineUnavailable):
            await collect(client)
    engine.hold.set()
