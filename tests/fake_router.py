"""What a sglang-router 0.3.2 with `--enable-igw` does with the requests that it
gets, as seen at a real one."""

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import web

_SAMPLING = {
    *("temperature", "top_p", "top_k", "min_p", "n", "max_new_tokens", "min_new_tokens", "ignore_eos"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "json_schema", "regex", "ebnf"),
    *("stop", "stop_token_ids", "no_stop_trim", "skip_special_tokens", "sampling_seed"),
}


class FakeRouter:
    """Passes `/generate` on to the worker that is registered for the model; leaves out what it does not know.

    A worker that cannot be reached is 502 to who asks. Everything but `/generate` and `/workers` is 404.
    """

    def __init__(self, *, api_key: str = "") -> None:
        self.url = ""
        self.workers: dict[str, dict[str, Any]] = {}
        """What is registered, by id."""
        self.forwarded: list[str] = []
        """The workers' addresses to which requests went."""
        self.registered: list[str] = []
        self._api_key = api_key
        self._started = threading.Event()

    def add(self, url: str, model: str) -> None:
        """Register a worker, as `--worker-urls` does (`model` is then the model's name)."""
        worker = {"id": f"w{len(self.registered)}", "url": url, "model_id": model, "is_healthy": True}
        self.registered.append(url)
        self.workers[worker["id"]] = worker

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application(client_max_size=64 * 2**20)
        application.add_routes(
            [
                web.post("/generate", self._generate),
                web.get("/workers", self._list),
                web.post("/workers", self._register),
                web.delete("/workers/{id}", self._remove),
            ]
        )
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    def _refused(self, http: web.Request) -> web.Response | None:
        if self._api_key and http.headers.get("Authorization") != f"Bearer {self._api_key}":
            return web.Response(status=401)
        return None

    async def _generate(self, http: web.Request) -> web.StreamResponse:
        if (refused := self._refused(http)) is not None:
            return refused
        body = orjson.loads(await http.read())
        urls = [one["url"] for one in self.workers.values() if one["model_id"] == body.get("model")]
        if not urls:
            return _error(503, "no_available_workers")
        self.forwarded.append(urls[0])
        sampling = body["sampling_params"]
        body["sampling_params"] = {name: sampling[name] for name in sampling if name in _SAMPLING}
        headers = {name: http.headers[name] for name in ("Authorization", "Content-Type")}
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{urls[0]}/generate", data=orjson.dumps(body), headers=headers) as answer,
            ):
                kind = answer.headers["Content-Type"]
                response = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
                await response.prepare(http)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response
        except aiohttp.ClientConnectorError:
            return _error(502, "call_upstream_connection_failed")

    async def _list(self, http: web.Request) -> web.Response:
        return self._refused(http) or web.json_response({"workers": list(self.workers.values())})

    async def _register(self, http: web.Request) -> web.Response:
        if (refused := self._refused(http)) is not None:
            return refused
        body = orjson.loads(await http.read())
        self.add(body["url"], body["model_id"])
        return web.json_response({"status": "accepted"}, status=202)

    async def _remove(self, http: web.Request) -> web.Response:
        del self.workers[http.match_info["id"]]
        return web.json_response({"status": "accepted"}, status=202)


def _error(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": code}}, status=status)
