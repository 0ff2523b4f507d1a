"""Around Django's ASGI application: the process's life, and a bound on bodies that no client can get past.

Django reads a body to its end before any view runs, so a limit in a view would come too late.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any

import orjson
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase

from apps.engines.chat import chat_format
from apps.gateway.errors import error_object
from apps.gateway.process import Process
from kernel import startup
from kernel.errors import TooLarge

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_STATE = "attune.process"
_QUERY = "attune.query"
# a refused body is still read for a while: a client that is cut off while it sends never reads the answer
_DRAIN_BYTES = 64 * 2**20
_DRAIN_S = 10.0


class Gateway:
    """The ASGI application of the gateway."""

    def __init__(self, django: ASGIHandler) -> None:
        self._django = django
        self._process: Process | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            # whoever puts a key into the query must not find it in an access log
            scope[_QUERY] = scope["query_string"]
            scope["query_string"] = b""
            scope[_STATE] = self._current()
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._current()
                await asyncio.to_thread(_warm_up)
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if self._process is not None:
                    await self._process.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _current(self) -> Process:
        if self._process is None:
            connections = settings.GATEWAY_LEDGER_CONNECTIONS
            threads = min(settings.GATEWAY_DATABASE_THREADS, settings.DATABASE_POOL - connections)
            self._process = Process(
                connections=connections,
                threads=max(1, threads),
                most_running=settings.GATEWAY_CONCURRENCY,
                redis_url=settings.REDIS_URL,
                lease_s=settings.ENGINE_TIMEOUT_S + 60,
            )
        return self._process

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        said = dict(scope["headers"]).get(b"content-length", b"")
        if said.isdigit() and int(said) > settings.MAX_BODY_BYTES:
            await _refuse(receive, send, waits=b"expect" not in dict(scope["headers"]))
            return
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > settings.MAX_BODY_BYTES:
                await _refuse(receive, send, waits=message.get("more_body", False))
                return
            if not message.get("more_body", False):
                break
        await self._respond(scope, bytes(body), receive, send)

    async def _respond(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Have Django find the view and its middleware answer;
        the rest of its handler is for synchronous code.

        That starts two threads for each request, to close what only threads hold. Here everything is
        asynchronous, and what needs a thread has the process's own.
        """
        request, refused = self._django.create_request(scope, BytesIO(body))
        watch = _Watch(asyncio.current_task())
        watching = asyncio.ensure_future(watch.until_it_leaves(receive))
        try:
            response: Any = refused if request is None else await self._django.get_response_async(request)
            try:
                self._current().counters.answer(response.status_code)
                await _sent(response, send)
            finally:
                response.close()
        except asyncio.CancelledError:
            if not watch.left:
                raise
            watch.undo()
        finally:
            watching.cancel()


class _Watch:
    """Cancels the task that answers a client once the client has left."""

    def __init__(self, answering: "asyncio.Task[Any] | None") -> None:
        self.left = False
        self._answering = answering

    async def until_it_leaves(self, receive: Receive) -> None:
        """Wait for the client's end of the connection to close."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left = True
        if self._answering is not None:
            self._answering.cancel()

    def undo(self) -> None:
        """Let the task go on: it has ended what it did for the client."""
        if self._answering is not None:
            self._answering.uncancel()


async def _sent(response: HttpResponseBase, send: Send) -> None:
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if isinstance(response, StreamingHttpResponse):
        async for piece in response:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})
    elif isinstance(response, HttpResponse):
        await send({"type": "http.response.body", "body": response.content})


def process_of(request: HttpRequest) -> Process:
    """Return the process that serves this request."""
    process: Process = request.scope[_STATE]  # type: ignore[attr-defined]
    return process


def query_of(request: HttpRequest) -> dict[str, str]:
    """Return what a request asks behind the question mark; of several values of a name the last."""
    query: bytes = request.scope[_QUERY]  # type: ignore[attr-defined]
    return QueryDict(query).dict()


def _warm_up() -> None:
    chat_format()  # reading a tokeniser takes longer than a request should wait
    startup.load_addresses()
    startup.settle()


async def _refuse(receive: Receive, send: Send, *, waits: bool) -> None:
    drained, end = 0, time.monotonic() + _DRAIN_S
    while waits and drained < _DRAIN_BYTES and time.monotonic() < end:
        try:
            message = await asyncio.wait_for(receive(), timeout=end - time.monotonic())
        except TimeoutError:
            break
        if message["type"] == "http.disconnect":
            return
        drained += len(message.get("body", b""))
        waits = message.get("more_body", False)
    error = TooLarge(f"The body is larger than {settings.MAX_BODY_BYTES} bytes.", code="request_too_large")
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(error_object(error))})
