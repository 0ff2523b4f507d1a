"""Server-sent events of a page: a piece of it is sent again whenever it has changed."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpRequest, StreamingHttpResponse

from kernel.tenancy import tenant_scope

EVERY_S = 1.0
ALIVE_S = 15.0  # proxies close what is silent for long
LONGEST_S = 600.0  # then the browser asks anew, and whether it still may is looked at again

Piece = Callable[[], tuple[str, bool]]
"""Returns the HTML as it is now, and whether it will change no more."""


def stream(request: HttpRequest, *, tenant_id: uuid.UUID, piece: Piece) -> StreamingHttpResponse:
    """Send the piece now and after each change, as unnamed events;
    `over` follows when it will change no more.

    An event's id is a hash of what was sent: a client that comes back with `Last-Event-ID` is not sent what
    it has. No database connection is held between two looks.
    """
    known = request.headers.get("Last-Event-ID", "")
    response = StreamingHttpResponse(_events(tenant_id, piece, known), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _events(tenant_id: uuid.UUID, piece: Piece, known: str) -> AsyncIterator[bytes]:
    silent_s, left_s = 0.0, LONGEST_S
    while left_s > 0:
        html, over = await sync_to_async(_look)(tenant_id, piece)
        mark = hashlib.sha256(html.encode()).hexdigest()[:16]
        if mark != known:
            known, silent_s = mark, 0.0
            lines = "".join(f"data: {line}\n" for line in html.splitlines())
            yield f"id: {mark}\n{lines}\n".encode()
        elif silent_s >= ALIVE_S:
            silent_s = 0.0
            yield b": still here\n\n"
        if over:
            yield b"event: over\ndata: .\n\n"
            return
        await asyncio.sleep(EVERY_S)
        silent_s, left_s = silent_s + EVERY_S, left_s - EVERY_S


def _look(tenant_id: uuid.UUID, piece: Piece) -> tuple[str, bool]:
    try:
        with tenant_scope(tenant_id):
            return piece()
    finally:
        close_old_connections()
