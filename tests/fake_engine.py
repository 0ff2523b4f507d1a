"""A small server that speaks SGLang's `/generate` and adapter loading, for tests and benches.

It behaves, it does not only agree: streams are cumulative, `max_new_tokens` and `stop` are kept, keys are
checked, an unknown adapter is refused, a client that hangs up aborts its request. Tests tell it what to
say and when to fail:

    with FakeEngine() as engine:
        engine.say("One", " short", " sentence", ".")
        engine.refuse_next(429, "queue is full")
        engine.die_after = 3            # the next requests lose their connection after three tokens
        engine.hold = threading.Event() # the last token is kept back until the event is set

Run by hand: `python -m tests.fake_engine --port 30000`.
"""

import argparse
import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from tests.fake_generation import END_OF_TURN, ONE_SHORT_SENTENCE, Request, Token, event_of, times_of

_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@dataclass(slots=True)
class _Refusal:
    status: int
    message: str
    headers: dict[str, str]


class FakeEngine:
    """One engine on a free loopback port, in a thread of its own."""

    def __init__(self, *, port: int = 0, api_key: str = "", admin_key: str = "") -> None:
        self.api_key = api_key
        self.admin_key = admin_key
        self.model_path = "fake"
        self.context_length = 8192
        self.vocab_size = 49152
        self.boot = 1
        self.requests: list[Request] = []
        self.adapters: dict[str, str] = {}
        self.reply: Callable[[Request], tuple[Token, ...]] = lambda _: ONE_SHORT_SENTENCE
        self.score: Callable[[str | None, int], float] = lambda _adapter, token: -1.0 - (token % 7) / 16
        self.score_of: Callable[[Request, int], float] = lambda request, token: self.score(
            request.adapter, token
        )
        self.delay_s = 0.0  # before each token
        self.tells_times = True  # of a reply that is not streamed, as with --enable-metrics
        self.load_s = 0.0  # an adapter takes this long to load
        self.max_loaded_loras = 8
        self.die_after: int | None = None  # tokens after which the connection is cut
        self.fail_after: int | None = None  # tokens after which an error event ends the stream
        self.hold: threading.Event | None = None  # before the last token
        self.hold_unload: threading.Event | None = None  # an unload answers only when it is set
        self.ready = True
        self._refusals: deque[_Refusal] = deque()
        self._port = port
        self._url: str | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()

    # --- what a test says

    def say(self, *texts: str, first_id: int = 100) -> None:
        """Answer everything with these tokens (ids counted from `first_id`), then the end of the turn."""
        tokens = (*(Token(first_id + i, text) for i, text in enumerate(texts)), Token(END_OF_TURN, ""))
        self.reply = lambda _: tokens

    def refuse_next(
        self, status: int, message: str = "refused", *, times: int = 1, headers: dict[str, str] | None = None
    ) -> None:
        """Answer the next `times` requests with this status before any token."""
        self._refusals.extend(_Refusal(status, message, headers or {}) for _ in range(times))

    def wait_for(self, condition: Callable[[], bool], within_s: float = 5.0) -> None:
        """Wait until `condition` holds; raises AssertionError where it does not in time."""
        end = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("the engine never got there")
            time.sleep(0.005)

    # --- life

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._url is not None, "not started"
        return self._url

    def start(self) -> Self:
        """Listen; returns when it does."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the fake engine did not start")
        return self

    def stop(self) -> None:
        """Close every connection and end."""
        if self._loop is None or self._loop.is_closed():
            return
        if self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        application = web.Application(client_max_size=64 * 2**20)
        application.add_routes(self.routes())
        # a request whose client hangs up is cancelled, as in the real server
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port)
        await site.start()
        self._port = runner.addresses[0][1]
        self._url = f"http://127.0.0.1:{self._port}"
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    # --- routes

    def routes(self) -> list[web.RouteDef]:
        """Return what it answers."""
        return [
            web.post("/generate", self._generate),
            web.post("/abort_request", self._abort),
            web.post("/load_lora_adapter", self._load),
            web.post("/unload_lora_adapter", self._unload),
            web.get("/ready", self._ready),
            web.get("/health", self._ready),
            web.get("/v1/models", self._models),
            web.get("/server_info", self._info),
            web.get("/get_server_info", self._info),
            web.get("/model_info", self._info),
            web.get("/get_model_info", self._info),
        ]

    async def _generate(self, http: web.Request) -> web.StreamResponse:
        if not self._allowed(http, self.api_key):
            return _error(401, "Unauthorized")
        body = orjson.loads(await http.read())
        request = Request(
            rid=body.get("rid") or f"fake-{len(self.requests)}",
            input_ids=body.get("input_ids") or [],
            sampling=body.get("sampling_params") or {},
            adapter=body.get("lora_path"),
            stream=bool(body.get("stream")),
            body=body,
            headers={key.lower(): value for key, value in http.headers.items()},
        )
        self.requests.append(request)
        if self._refusals:
            refusal = self._refusals.popleft()
            return _error(refusal.status, refusal.message, refusal.headers)
        if request.adapter is not None and request.adapter not in self.adapters:
            return _error(400, f"The following requested LoRA adapters are not loaded: {request.adapter}")
        if len(request.input_ids) > self.context_length:
            return _error(400, "The input is longer than the model's context length")
        try:
            if request.stream:
                return await self._streamed(http, request)
            return await self._whole(http, request)
        except (asyncio.CancelledError, ConnectionResetError):
            if request.aborted is None:
                request.aborted = time.monotonic()
            raise

    async def _whole(self, http: web.Request, request: Request) -> web.Response:
        tokens, finish = self._planned(request)
        for index in range(len(tokens)):
            await self._pace(request, last=index == len(tokens) - 1)
            if self.die_after is not None and index >= self.die_after:
                assert http.transport is not None
                http.transport.abort()
                return web.Response()
            if request.aborted is not None:
                return _json(event_of(request, tokens[:index], {"type": "abort", "message": "Abort"}))
            request.first = request.first or time.monotonic()
            request.sent += 1
        if self.fail_after is not None and len(tokens) >= self.fail_after:
            return _error(500, "the engine failed")
        request.finished = True
        event = event_of(request, tokens, finish)
        event["meta_info"] |= times_of(request) if self.tells_times else {}
        return _json(self._scored(request, event))

    async def _streamed(self, http: web.Request, request: Request) -> web.StreamResponse:
        tokens, finish = self._planned(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        for index in range(len(tokens)):
            if self.die_after is not None and index >= self.die_after:
                assert http.transport is not None
                http.transport.abort()
                return response
            if self.fail_after is not None and index >= self.fail_after:
                error = {"message": "the engine failed", "type": "internal", "code": 500}
                await response.write(b"data: " + orjson.dumps({"error": error}) + b"\n\n")
                break
            last = index == len(tokens) - 1
            await self._pace(request, last=last)
            if request.aborted is not None:
                event = event_of(request, tokens[:index], {"type": "abort", "message": "Abort"})
                await response.write(b"data: " + orjson.dumps(event) + b"\n\n")
                break
            event = event_of(request, tokens[: index + 1], finish if last else None)
            request.finished = last  # before the write: the client may look as soon as it has the bytes
            await response.write(b"data: " + orjson.dumps(event) + b"\n\n")
            request.sent += 1
        await response.write(b"data: [DONE]\n\n")
        return response

    def _planned(self, request: Request) -> tuple[tuple[Token, ...], dict[str, Any]]:
        tokens = self.reply(request)
        limit = request.sampling.get("max_new_tokens", 128)
        stop = request.sampling.get("stop") or []
        text = ""
        for index, token in enumerate(tokens[:limit]):
            text += token.text
            hit = next((s for s in ([stop] if isinstance(stop, str) else stop) if s in text), None)
            if hit is not None:
                return tokens[: index + 1], {"type": "stop", "matched": hit}
        if len(tokens) > limit:
            return tokens[:limit], {"type": "length", "length": limit}
        return tokens, {"type": "stop", "matched": tokens[-1].id if tokens else None}

    async def _pace(self, request: Request, *, last: bool) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        hold = self.hold
        while last and hold is not None and not hold.is_set() and request.aborted is None:
            await asyncio.sleep(0.005)

    def _scored(self, request: Request, event: dict[str, Any]) -> dict[str, Any]:
        start = request.body.get("logprob_start_len", -1)
        if request.body.get("return_logprob") and start is not None and start >= 0:
            ids = request.input_ids[start:]
            event["meta_info"]["input_token_logprobs"] = [
                # the real one calls its vocabulary's last token 0 here, with the last token's own score
                [
                    None if start + i == 0 else self.score_of(request, token),
                    token if token < self.vocab_size - 1 else 0,
                    None,
                ]
                for i, token in enumerate(ids)
            ]
        return event

    async def _abort(self, http: web.Request) -> web.Response:
        if not self._allowed(http, self.admin_key):
            return _error(401, "Unauthorized")
        body = orjson.loads(await http.read())
        for request in self.requests:
            if not request.finished and (body.get("abort_all") or request.rid == body.get("rid")):
                request.aborted = request.aborted or time.monotonic()
        return web.Response()

    async def _load(self, http: web.Request) -> web.Response:
        if not self._allowed(http, self.admin_key):
            return _error(401, "Unauthorized")
        body = orjson.loads(await http.read())
        name = body["lora_name"]
        await asyncio.sleep(self.load_s)
        if name in self.adapters:
            return _json({"success": False, "error_message": f"{name} is already loaded"}, status=400)
        while len(self.adapters) >= self.max_loaded_loras:
            self.adapters.pop(next(iter(self.adapters)))  # silently, as the real one does
        self.adapters[name] = body["lora_path"]
        return _json({"success": True, "loaded_adapters": self.adapters})

    async def _unload(self, http: web.Request) -> web.Response:
        if not self._allowed(http, self.admin_key):
            return _error(401, "Unauthorized")
        body = orjson.loads(await http.read())
        while self.hold_unload is not None and not self.hold_unload.is_set():
            await asyncio.sleep(0.01)
        if self.adapters.pop(body["lora_name"], None) is None:
            return _json({"success": False, "error_message": "not loaded"}, status=400)
        return _json({"success": True, "loaded_adapters": self.adapters})

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self.ready else 503)

    async def _models(self, http: web.Request) -> web.Response:
        if not self._allowed(http, self.api_key):
            return _error(401, "Unauthorized")
        base = [{"id": "base", "object": "model", "root": self.model_path, "parent": None}]
        loaded = [
            {"id": name, "object": "model", "root": path, "parent": "base"}
            for name, path in self.adapters.items()
        ]
        return _json({"object": "list", "data": [*base, *loaded]})

    async def _info(self, http: web.Request) -> web.Response:
        if not self._allowed(http, self.api_key):
            return _error(401, "Unauthorized")
        return _json(
            {
                "model_path": self.model_path,
                "max_loaded_loras": self.max_loaded_loras,
                "max_loras_per_batch": 4,
                "max_lora_rank": 16,
                "lora_target_modules": _TARGETS,
                "random_seed": self.boot,  # another one after a restart
                "startup_time": float(self.boot),
                "context_length": self.context_length,
            }
        )

    @staticmethod
    def _allowed(http: web.Request, key: str) -> bool:
        return not key or http.headers.get("Authorization") == f"Bearer {key}"


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    response = _json({"error": {"message": message, "type": "invalid_request_error", "code": status}}, status)
    response.headers.update(headers or {})
    return response


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--tokens", type=int, default=0, help="words per reply; 0: one short sentence")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="before each token")
    options = parser.parse_args()
    with FakeEngine(port=options.port) as engine:
        engine.delay_s = options.delay_ms / 1000
        if options.tokens:
            engine.say(*(" word" for _ in range(options.tokens)))
        print(engine.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
