"""An OpenAI-compatible server on a free port that answers, hangs, fails, lies and babbles."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

Body = dict[str, Any]
# (status, content), seconds to hang, or the raw body of a 200, in one piece or in many
Said = tuple[int, str] | float | bytes | AsyncIterator[bytes]
Answer = Callable[[int, Body], Said]


def ballot_of(body: Body) -> str:
    """Return the ballot number of a request, as a judge that read the system message would."""
    found = re.search(r'"ballot": "([0-9a-f]{8})"', body["messages"][0]["content"])
    assert found is not None
    return found.group(1)


def vote(body: Body, score: object, hint: str | None = None) -> str:
    """Return a valid answer to a request."""
    return json.dumps({"ballot": ballot_of(body), "score": score, "hint": hint})


class Endpoint:
    """`answer(n, body)` says what the nth request gets."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _n, body: (200, vote(body, -1, "Answer in one short sentence."))
        self.usage: dict[str, int] | None = {"prompt_tokens": 100, "completion_tokens": 7}
        self.bodies: list[Body] = []
        self.at_once = 0
        self.most_at_once = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait(10)

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._said(request, self.answer(len(self.bodies), self.bodies[-1]))
        finally:
            self.at_once -= 1

    async def _said(self, request: web.Request, said: Said) -> web.StreamResponse:
        if isinstance(said, float):
            await asyncio.sleep(said)
            return web.Response(status=500)
        if isinstance(said, bytes):
            return web.Response(body=said, content_type="application/json")
        if isinstance(said, tuple):
            status, content = said
            body: Body = {"choices": [{"message": {"content": content}}]}
            if self.usage is not None:
                body["usage"] = self.usage
            return web.json_response(body, status=status)
        response = web.StreamResponse()
        await response.prepare(request)
        async for piece in said:
            await response.write(piece)
        await response.write_eof()
        return response

    def stop(self) -> None:
        """End the server."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
