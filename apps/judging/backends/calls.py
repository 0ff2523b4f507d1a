"""Requests to a judge's endpoint: many at once from any thread,
over few connections, each within its limits."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import aiohttp

T = TypeVar("T")

RETRIES = 2  # of one request, within the deadline
RETRY_AFTER_S = 0.5  # doubles, with jitter
MOST_BYTES = 256_000  # of an answer; what is longer is not read to its end
MOST_TOKENS = 10_000_000  # that an endpoint is believed to have read or written for one answer
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request. `reached`: the endpoint answered, with sense or without."""

    content: str
    """The message's text; "" where there was none."""
    prompt_tokens: int
    completion_tokens: int
    latency_ms: float
    reached: bool
    trouble: str = ""
    """Why there is no content."""


class Calls:
    """One event loop in a thread of its own, with one pool of connections, for all judging of a process."""

    def __init__(self, concurrency: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._concurrency = concurrency
        self._session: aiohttp.ClientSession | None = None
        self._places = asyncio.Semaphore(concurrency)
        threading.Thread(target=self._loop.run_forever, name="judge calls", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and return the result; the calling thread waits."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def ask(
        self, url: str, body: Mapping[str, Any], *, headers: Mapping[str, str], until: float
    ) -> Answer:
        """Post `body`, again with backoff where that may help, until the deadline (`time.monotonic`).

        Never raises.
        """
        started = time.monotonic()
        trouble = ""
        for attempt in range(RETRIES + 1):
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left), self._places:
                    status, raw, pause = await self._post(url, body, headers)
            except TimeoutError:
                trouble = "no answer within the deadline"
                break
            except (aiohttp.ClientError, OSError) as error:
                trouble, pause = f"{type(error).__name__}: {error}", 0.0
            else:
                took = (time.monotonic() - started) * 1e3
                if status == 200:
                    return _read(raw, took)
                trouble = f"the endpoint answered with status {status}"
                if not _passing(status):
                    break
            left = until - time.monotonic()
            wait = max(pause, RETRY_AFTER_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
            if attempt < RETRIES and wait < left:
                await asyncio.sleep(wait)
            else:
                break
        return Answer(
            "", 0, 0, (time.monotonic() - started) * 1e3, reached=False, trouble=trouble or "too late"
        )

    async def _post(
        self, url: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, bytes | None, float]:
        """Return (status, answer or None where it is too long, seconds to wait if the endpoint says so)."""
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._concurrency)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=None)
            )
        # a redirect would carry the key elsewhere
        async with self._session.post(url, json=body, headers=headers, allow_redirects=False) as response:
            raw = bytearray()
            async for chunk in response.content.iter_chunked(65_536):
                raw += chunk
                if len(raw) > MOST_BYTES:
                    return response.status, None, 0.0
            return response.status, bytes(raw), _seconds(response.headers.get("Retry-After", ""))


@cache
def _calls(concurrency: int) -> Calls:
    return Calls(concurrency)


def shared_calls(concurrency: int) -> Calls:
    """Return the process's calls; the same for the same number of requests at once."""
    with _LOCK:
        return _calls(concurrency)


def _read(raw: bytes | None, latency_ms: float) -> Answer:
    """Read an answer as a chat completion; anything else has no content, and says why."""
    if raw is None:
        return Answer("", 0, 0, latency_ms, reached=True, trouble="answer too long")
    try:
        answer = json.loads(raw)
        content = answer["choices"][0]["message"]["content"]
        usage = answer.get("usage") or {}
        tokens = [
            min(max(0, int(usage.get(name) or 0)), MOST_TOKENS)
            for name in ("prompt_tokens", "completion_tokens")
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError):
        return Answer("", 0, 0, latency_ms, reached=True, trouble="answer is not a chat completion")
    text = content if isinstance(content, str) else ""
    return Answer(text, tokens[0], tokens[1], latency_ms, reached=True)


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), 60.0) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _passing(status: int) -> bool:
    """Whether a status may be another one a moment later."""
    return status in (408, 409, 425, 429) or status >= 500
