"""A stand-in for the whole platform behind `/v1`:
it learns brevity from what follows its replies, without any model.

Every `batch` answered replies make a version; version n answers in one sentence with the rate `curve[n]`.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Sequence

import orjson
from aiohttp import web

from apps.evaluation.demo.ledger import Facts

LONG = "{topic} is a big matter. It has many sides. One could go on for a long time."
SHORT = "{topic} is a matter of a few words."


PACE_S = 0.7  # between versions: long enough for each to be measured


class FakePlatform:
    """Serves until the block ends; `facts` is what its ledger would say."""

    def __init__(self, *, curve: Sequence[float], batch: int = 8, seed: int = 0) -> None:
        self.curve = curve
        self.live = 0
        self.swaps = 0
        self.moves_back: list[int] = []
        self.requests: list[dict[str, object]] = []
        self.fail: set[int] = set()
        """Numbers of requests (from 0) that get a 503."""
        self.training = True
        self.waits_for_exam = False
        """Keep every version from the second on live until it has been asked for by name."""
        self._newest = 0
        self._moved_at = 0.0
        self._waiting = 0
        self._batch = batch
        self._random = random.Random(seed)
        self._turns = itertools.count(1)

    async def __aenter__(self) -> "FakePlatform":
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()

    def facts(self) -> Facts:
        self._step()
        return Facts(live=self.live, ready=self._waiting, swaps=self.swaps, moves_back=len(self.moves_back))

    async def go_back(self, version: int) -> None:
        self.live = version
        self.moves_back.append(version)

    async def pause(self) -> None:
        self.training = False

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        number = len(self.requests)
        self.requests.append(body)
        if number in self.fail:
            return web.json_response({"error": {"message": "no engine", "type": "server_error"}}, status=503)
        _, _, named = body["model"].partition("@")
        version = int(named) if named else self.live
        messages = body["messages"]
        if not named and len(messages) == 3:
            self._waiting += 1
        brief = self._random.random() < self.curve[min(version, len(self.curve) - 1)]
        text = (SHORT if brief else LONG).format(topic=messages[0]["content"].strip("?"))
        return await self._stream(request, text, version)

    def _awaits_exam(self) -> bool:
        asked = sum(str(body["model"]).endswith(f"@{self.live}") for body in self.requests)
        return self.waits_for_exam and self.live >= 2 and asked < 12

    def _step(self) -> None:
        rested = time.monotonic() - self._moved_at > PACE_S and not self._awaits_exam()
        if self._waiting >= self._batch and self.training and rested:
            self._moved_at = time.monotonic()
            self._waiting -= self._batch
            self._newest += 1
            self.live = self._newest
            self.swaps += 1

    async def _stream(self, request: web.Request, text: str, version: int) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "X-Adapter-Version": str(version),
                "X-Turn-Id": f"turn-{next(self._turns)}",
            }
        )
        await response.prepare(request)
        for piece in (text[:5], text[5:]):
            await response.write(_frame({"content": piece}, None))
            await asyncio.sleep(0.002)
        await response.write(_frame({}, "stop") + b"data: [DONE]\n\n")
        return response


def _frame(delta: dict[str, str], finish: str | None) -> bytes:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"
