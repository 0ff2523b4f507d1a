"""Send chats to a server as fast as it answers, over connections that stay open, at little cost to the sender."""

import asyncio
import random
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson

_WORDS = (
    *(
        "river",
        "stone",
        "quick",
        "letter",
        "garden",
        "winter",
        "signal",
        "copper",
        "marble",
        "ladder",
        "orange",
    ),
    *(
        "window",
        "silver",
        "planet",
        "thread",
        "forest",
        "candle",
        "bridge",
        "market",
        "pencil",
        "summer",
        "basket",
    ),
)


@dataclass(slots=True)
class Measured:
    """Seconds of each request, in which time they were all done, and how many went wrong."""

    took: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """To the first byte of a stream's second frame or of a whole body."""
    wall_s: float = 0.0
    failed: int = 0

    @property
    def per_second(self) -> float:
        """Requests answered in a second."""
        return len(self.took) / self.wall_s


def p99(values: list[float]) -> float:
    """Return the 99th percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


async def drive(
    url: str, key: str, *, seconds: float, parallel: int, stream: bool, seed: int, prompt_words: int
) -> Measured:
    """Keep `parallel` requests with distinct prompts going for some seconds."""
    measured = Measured()
    started = time.monotonic()
    end = started + seconds

    async def one(lane: int) -> None:
        words = random.Random(seed * 1000 + lane)
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        number = 0
        while time.monotonic() < end:
            number += 1
            said = f"{seed}-{lane}-{number}: " + " ".join(words.choices(_WORDS, k=prompt_words))
            body = {"model": "default", "stream": stream, "messages": [{"role": "user", "content": said}]}
            began = time.monotonic()
            try:
                if connection is None:
                    connection = await _connect(url)
                first = await _exchange(connection, url, key, orjson.dumps(body), stream=stream)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                measured.failed += 1
                if connection is not None:
                    connection[1].close()
                connection = None
                continue
            measured.took.append(time.monotonic() - began)
            measured.first.append(first - began)
        if connection is not None:
            connection[1].close()

    await asyncio.gather(*(one(lane) for lane in range(parallel)))
    measured.wall_s = time.monotonic() - started
    return measured


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(url)
    return await asyncio.open_connection(place.hostname, place.port, limit=2**22)


async def _exchange(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    url: str,
    key: str,
    body: bytes,
    *,
    stream: bool,
) -> float:
    """Send one request and read its whole answer; returns when the first content came.

    Raises ValueError for others than 200.
    """
    reader, writer = connection
    writer.write(
        (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
    )
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0].strip()
    if length:
        content = await reader.readexactly(int(length))
        first = time.monotonic()
    else:
        content = await reader.readuntil(b"\r\n")
        first = time.monotonic()
        while not content.endswith(b"0\r\n\r\n"):
            content += await reader.readuntil(b"\r\n")
    good = b"data: [DONE]" in content if stream else b'"finish_reason"' in content
    if not head.startswith(b"http/1.1 200") or not good:
        raise ValueError(head.decode("latin-1")[:200] + content.decode("utf-8", "replace")[:500])
    return first
