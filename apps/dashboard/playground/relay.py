"""Carry a reply from the gateway to a browser, as it comes."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

_CONNECT_S = 5.0
_LONGEST_REFUSAL = 100_000  # bytes


def event(name: str, value: Mapping[str, Any]) -> bytes:
    """Return a named server-sent event."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"


async def relay(*, key: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Yield `turn` (which version answers, under which ids) and then the gateway's own
    events, or `refused` and why.

    Leaving early hangs up on the gateway, which stops the engine and keeps the part that was written, marked.
    No database connection is held while the reply comes.
    """
    await sync_to_async(close_old_connections)()
    asked = {
        **headers,
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }
    try:
        async with (
            httpx.AsyncClient(
                trust_env=False, timeout=httpx.Timeout(settings.ENGINE_TIMEOUT_S, connect=_CONNECT_S)
            ) as client,
            client.stream(
                "POST",
                f"{settings.GATEWAY_URL}/chat/completions",
                headers=asked,
                content=orjson.dumps(body),
            ) as answer,
        ):
            if answer.status_code != 200:
                yield event("refused", await _refusal(answer))
                return
            yield event(
                "turn",
                {
                    "turn": answer.headers.get("X-Turn-Id", ""),
                    "version": answer.headers.get("X-Adapter-Version", ""),
                },
            )
            async for piece in answer.aiter_bytes():
                yield piece
    except httpx.HTTPError:
        yield event("refused", {"status": 502, "message": "The gateway did not answer. Try again."})


async def _refusal(answer: httpx.Response) -> dict[str, Any]:
    """Return what a refusal says, in OpenAI's shape or not."""
    said = b""
    async for piece in answer.aiter_bytes():
        said += piece
        if len(said) > _LONGEST_REFUSAL:
            break
    try:
        message = str(orjson.loads(said)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = f"The gateway answered {answer.status_code}."
    return {"status": answer.status_code, "message": message}
