"""HTTP to one SGLang server: its two keys, the router before it, frames of a stream,
and what each failure means."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from apps.engines.replies import EngineBroken, EngineGone, EngineSilent, EngineUnavailable, error_of
from kernel.errors import AttuneError

_CONNECT_S = 5.0
_KEEPALIVE_S = 2.0  # the server closes idle connections after 5 s: never race it with a request
ASK_S = 15.0
_MAX_REPLY_BYTES = 64 * 1024 * 1024


class Wire:
    """Connections to one engine, opened when first used, of the running event loop.

    Raises EngineUnavailable (503; EngineGone and EngineSilent are kinds of it), EngineBroken (502) or what
    the engine's refusal means.
    """

    def __init__(self, url: str, *, api_key: str, admin_key: str, timeout_s: float, router: str) -> None:
        """`timeout_s` bounds the wait for bytes; `router` is "" where nothing stands before the engine."""
        self.url = url
        self.router = router
        self._api_key = api_key
        self._admin_key = admin_key
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        """Close the connections, where they are this loop's."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    async def only_frame(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the one frame of a reply that is not streamed."""
        routed = "model" in body
        async with self.answer(
            "POST", "/generate", body, timeout_s=self._timeout_s, routed=routed
        ) as response:
            content = await response.read()
        if response.status != 200:
            raise await self._refusal(response.status, content, routed=routed)
        yield parsed(content)

    async def frames(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the stream's frames; of those that arrived together only the last,
        as each holds all before."""
        routed = "model" in body
        async with self.answer("POST", "/generate", body, timeout_s=None, routed=routed) as response:
            if response.status != 200:
                raise await self._refusal(response.status, await response.read(), routed=routed)
            rest = b""
            async for data in response.content.iter_any():
                *whole, rest = (rest + data).split(b"\n\n")
                if len(rest) > _MAX_REPLY_BYTES:
                    raise EngineBroken("the engine sent a frame without an end")
                frames = [line[5:].strip() for line in whole if line.startswith(b"data:")]
                frames = [frame for frame in frames if frame != b"[DONE]"]
                if frames:
                    last = parsed(frames[-1])
                    if "error" in last and len(frames) > 1:
                        yield parsed(frames[-2])  # what was written before the failure counts
                    yield last

    async def _refusal(self, status: int, content: bytes, *, routed: bool) -> AttuneError:
        """Return what a refusal means.

        A router that cannot reach the engine does not say whether that is gone.
        """
        error = error_of(status, _message(content))
        if routed and type(error) is EngineUnavailable:
            try:
                async with self.answer("GET", "/ready", None, timeout_s=_CONNECT_S):
                    pass
            except EngineGone as gone:
                return gone
            except EngineUnavailable:
                pass
        return error

    async def ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the object that the engine answers with."""
        async with self.answer(method, path, body, timeout_s=timeout_s or ASK_S) as response:
            content = await response.read()
            if response.status != 200:
                raise error_of(response.status, _message(content))
            return parsed(content)

    @asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        *,
        timeout_s: float | None,
        admin: bool = False,
        routed: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open one request. `timeout_s` bounds all of it; None bounds each wait for bytes instead."""
        key = self._admin_key if admin else self._api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        through = self.router if routed else self.url
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._connections().request(
                method,
                f"{through}{path}",
                data=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=aiohttp.ClientTimeout(
                    total=timeout_s, sock_connect=_CONNECT_S, sock_read=self._timeout_s
                ),
            ) as response:
                yield response
        except aiohttp.ClientPayloadError as error:
            raise EngineBroken("the connection to the engine broke in the middle of an answer") from error
        except aiohttp.ConnectionTimeoutError as error:
            raise self._nobody(through) from error
        except TimeoutError as error:
            raise EngineSilent("the engine does not answer in time", retry_after_s=1.0) from error
        except aiohttp.ClientConnectorError as error:
            raise self._nobody(through) from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineUnavailable(
                f"the engine does not answer ({type(error).__name__})", retry_after_s=1.0
            ) from error

    def _nobody(self, through: str) -> EngineUnavailable:
        if through != self.url:
            return EngineUnavailable("the router does not answer", retry_after_s=1.0)
        return EngineGone("nobody answers at the engine's address", retry_after_s=1.0)

    def _connections(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
                trust_env=False,
            )
        return self._session


def parsed(content: bytes) -> dict[str, Any]:
    """Return an answer of the engine, which is a JSON object, or raise EngineBroken."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise EngineBroken("the engine's answer is not JSON") from error
    if not isinstance(value, dict):
        raise EngineBroken("the engine's answer is not an object")
    return value


def _message(content: bytes) -> str:
    try:
        error = parsed(content).get("error", "")
    except EngineBroken:
        return ""
    return str(error.get("message", "") if isinstance(error, dict) else error)
