"""A sglang-router in front: generation goes through it to the engine that was chosen, everything else past it."""

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack

import aiohttp
import pytest
from aiohttp import web

from apps.engines.client import EngineClient
from apps.engines.replies import EngineGone, EngineUnavailable
from tests.fake_engine import FakeEngine


class Router:
    """Forwards `/generate` to the worker that a request names, as sglang-router does with consistent_hashing."""

    def __init__(self) -> None:
        self.forwarded: list[tuple[str, str]] = []
        self.url = ""

    async def forward(self, http: web.Request) -> web.StreamResponse:
        """Pass one request on and its answer back, as it comes."""
        worker = http.headers["X-SMG-Target-Worker"]
        self.forwarded.append((http.path, worker))
        headers = {name: http.headers[name] for name in ("Authorization", "Content-Type")}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{worker}{http.path}", data=await http.read(), headers=headers) as answer,
        ):
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(http)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response


@pytest.fixture
async def router() -> AsyncIterator[Router]:
    made = Router()
    application = web.Application()
    application.add_routes([web.post("/generate", made.forward)])  # and nothing else: the rest is 404
    runner = web.AppRunner(application)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    made.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    yield made
    await runner.cleanup()


@pytest.mark.parametrize("stream", [True, False])
async def test_generation_goes_through_the_router_to_the_chosen_engine(
    router: Router,
    stream: bool,
) -> None:
    with ExitStack() as stack:
        engines = [stack.enter_context(FakeEngine(api_key="k", admin_key="a")) for _ in range(2)]
        for engine in engines:
            async with EngineClient(engine.url, "k", "a", vocab_size=64, router=router.url) as client:
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

    assert router.forwarded == [("/generate", engine.url) for engine in engines]


async def test_a_router_that_is_gone_is_not_an_engine_that_is_gone() -> None:
    with FakeEngine() as engine:
        async with EngineClient(engine.url, vocab_size=64, router="http://127.0.0.1:1") as client:
            with pytest.raises(EngineUnavailable) as refused:
                async for _ in client.generate(input_ids=[1, 2], sampling={}):
                    pass
            assert not isinstance(refused.value, EngineGone)
            assert await client.ready()
