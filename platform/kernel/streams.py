"""What is sent piece by piece, so that never more of it than one piece is in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

T = TypeVar("T")

_OVER = object()


async def one_by_one(pieces: Iterator[T]) -> AsyncIterator[T]:
    """Yield what an iterator that reads files or computes yields,
    each in a thread once the one before was taken.

    Given the iterator itself, a streamed response would list all of it before its first byte is sent. It must
    not read the database: nothing would end its connection.
    """
    while (piece := await asyncio.to_thread(next, pieces, _OVER)) is not _OVER:
        yield piece  # type: ignore[misc]
