"""Server-sent events of a page: a piece of it is sent again whenever it has changed."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import Http404, HttpRequest, StreamingHttpResponse

from apps.accounts.models import User
from apps.dashboard.places import Place, place_of
from kernel.tenancy import tenant_scope

EVERY_S = 1.0
ALIVE_S = 15.0  # proxies close what is silent for long
LONGEST_S = 600.0  # then the browser asks anew

Piece = Callable[[], tuple[str, bool]]
"""Returns the HTML as it is now, and whether it will change no more."""


def stream(request: HttpRequest, place: Place, *, piece: Piece) -> StreamingHttpResponse:
    """Send the piece now and after each change, as unnamed events;
    `over` follows when it will change no more.

    An event's id is a hash of what was sent: a client that comes back with `Last-Event-ID` is not sent what
    it has. Before anything is sent it is asked whether the person still may: who has signed out, has left or has
    another role gets nothing more, and asks anew. No database connection is held between two looks.
    """
    known = request.headers.get("Last-Event-ID", "")
    response = StreamingHttpResponse(_events(request, place, piece, known), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _events(request: HttpRequest, place: Place, piece: Piece, known: str) -> AsyncIterator[bytes]:
    silent_s, left_s = 0.0, LONGEST_S
    while left_s > 0:
        html, over = await sync_to_async(_look)(place.tenant.pk, piece)
        mark = hashlib.sha256(html.encode()).hexdigest()[:16]
        if mark != known:
            if not await sync_to_async(_still_may)(request, place):
                return
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


def _still_may(request: HttpRequest, place: Place) -> bool:
    """Whether who asked is signed in by the same session and has the same role there."""
    now = HttpRequest()
    now.session = type(request.session)(request.session.session_key)
    try:
        user = get_user(now)
        return (
            isinstance(user, User)
            and place_of(user, place.tenant.slug).membership.role == place.membership.role
        )
    except Http404:
        return False
    finally:
        close_old_connections()
