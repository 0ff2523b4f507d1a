"""A sglang-router in front: generation goes through it to the engine that was chosen,
everything else past it."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from apps.engines.client import EngineClient
from apps.engines.replies import AdapterMissing, EngineGone, EngineUnavailable
from tests.fake_engine import FakeEngine
from tests.fake_router import FakeRouter


@pytest.fixture
def router() -> Iterator[FakeRouter]:
    with FakeRouter(api_key="k") as running:
        yield running


@pytest.fixture
def engine(router: FakeRouter) -> Iterator[FakeEngine]:
    with FakeEngine(api_key="k", admin_key="a") as running:
        router.add(running.url, running.url)
        yield running


def client_of(engine: FakeEngine, router: FakeRouter) -> EngineClient:
    return EngineClient(engine.url, "k", "a", vocab_size=64, router=router.url)


@pytest.mark.parametrize("stream", [True, False])
async def test_generation_goes_through_the_router_to_the_chosen_engine(
    router: FakeRouter, stream: bool
) -> None:
    with ExitStack() as stack:
        engines = [stack.enter_context(FakeEngine(api_key="k", admin_key="a")) for _ in range(2)]
        for engine in engines:
            router.add(engine.url, engine.url)
        for engine in engines:
            async with client_of(engine, router) as client:
                await client.load("p1-v1-aa", "/store/1")
                assert await client.loaded() == {"p1-v1-aa": "/store/1"}
                assert await client.ready()
                await client.score([1, 2, 3], "p1-v1-aa")
                chunks = [
                    chunk
                    async for chunk in client.generate(
                        input_ids=[1, 2], sampling={}, adapter="p1-v1-aa", stream=stream
                    )
                ]
            assert "".join(chunk.text for chunk in chunks) == "One short sentence."
            assert [request.adapter for request in engine.requests] == ["p1-v1-aa"] * 2

    assert router.forwarded == [engine.url for engine in engines]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("sampling", "through"),
    [
        ({"temperature": 0.5, "top_p": 0.9, "max_new_tokens": 4, "stop": ["x"], "sampling_seed": 7}, True),
        ({"json_schema": "{}"}, True),
        # the router leaves out the first and refuses the second
        ({"structural_tag": "{}"}, False),
        ({"sampling_seed": -1}, False),
        ({"a parameter of tomorrow": 1}, False),
    ],
)
async def test_what_the_router_would_not_pass_on_whole_goes_past_it(
    router: FakeRouter, engine: FakeEngine, sampling: dict[str, Any], *, through: bool, stream: bool
) -> None:
    async with client_of(engine, router) as client:
        async for _ in client.generate(input_ids=[1, 2], sampling=sampling, stream=stream):
            pass

    assert router.forwarded == [engine.url] * through
    assert [request.sampling for request in engine.requests] == [sampling]


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_that_the_router_does_not_know_is_not_gone(router: FakeRouter, stream: bool) -> None:
    with FakeEngine(api_key="k", admin_key="a") as engine:
        async with client_of(engine, router) as client:
            with pytest.raises(EngineUnavailable) as refused:
                async for _ in client.generate(input_ids=[1, 2], sampling={}, stream=stream):
                    pass
    assert type(refused.value) is EngineUnavailable
    assert engine.requests == []


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_that_is_gone_is_gone_behind_a_router_too(
    router: FakeRouter, engine: FakeEngine, stream: bool
) -> None:
    engine.stop()
    async with client_of(engine, router) as client:
        with pytest.raises(EngineGone):
            async for _ in client.generate(input_ids=[1, 2], sampling={}, stream=stream):
                pass


async def test_a_missing_adapter_is_told_through_the_router(router: FakeRouter, engine: FakeEngine) -> None:
    async with client_of(engine, router) as client:
        with pytest.raises(AdapterMissing):
            async for _ in client.generate(input_ids=[1, 2], sampling={}, adapter="p1-v1-aa"):
                pass


async def test_a_router_that_is_gone_is_not_an_engine_that_is_gone() -> None:
    with FakeEngine() as engine:
        async with EngineClient(engine.url, vocab_size=64, router="http://127.0.0.1:1") as client:
            with pytest.raises(EngineUnavailable) as refused:
                async for _ in client.generate(input_ids=[1, 2], sampling={}):
                    pass
            assert not isinstance(refused.value, EngineGone)
            assert await client.ready()
