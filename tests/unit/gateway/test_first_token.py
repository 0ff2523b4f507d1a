"""When the first token was there is what somebody knows, and never when the whole reply was."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from apps.engines.replies import Chunk
from apps.gateway.work import Work

STARTED, NOW = 100.0, 118.0


def chunk(ids: list[int], ago: float | None) -> Chunk:
    return Chunk("x" * len(ids), ids, [-0.5] * len(ids), first_token_ago_s=ago)


@pytest.mark.parametrize(
    ("chunks", "first_ms"),
    [
        ([chunk([5], 0.0)], 18_000.0),  # the first of a stream
        ([chunk([5, 6, 7], 17.75)], 250.0),  # whole, and the engine says when
        ([chunk([5, 6, 7], 18.0)], 0.0),
        ([chunk([5, 6, 7], None)], None),  # whole, and nobody says
        ([chunk([5, 6, 7], 18.5)], None),  # before the request came
        ([chunk([], 0.0)], None),  # no token at all
        ([chunk([], 0.0), chunk([5], 2.0), chunk([6], 0.0)], 16_000.0),
        ([chunk([5], None), chunk([6], 0.0)], None),  # the second token is not the first
    ],
)
async def test_the_first_token_is_when_it_was_there(
    chunks: list[Chunk], first_ms: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def seat(**_: object) -> AsyncGenerator[None, None]:
        yield

    async def reply(*_: object, **__: object) -> AsyncGenerator[Chunk, None]:
        for one in chunks:
            yield one

    monkeypatch.setattr("apps.gateway.work.time", SimpleNamespace(monotonic=lambda: NOW))
    monkeypatch.setattr("apps.gateway.work.adapter_slots", lambda: SimpleNamespace(seat=seat))
    monkeypatch.setattr("apps.gateway.work.engine_client", lambda _: None)
    monkeypatch.setattr("apps.gateway.work.shared_reply", reply)
    work = Work(
        process=cast("Any", SimpleNamespace(uses_engine=lambda _: None)),
        admission=cast(
            "Any",
            SimpleNamespace(
                target=SimpleNamespace(served_name="p-v1", adapter="p-v1"),
                engine="http://one",
                ask=SimpleNamespace(tools=None, top_logprobs=0),
                permit=SimpleNamespace(used=0),
                sampling={"max_tokens": 8},
            ),
        ),
        admitted=cast("Any", SimpleNamespace(tenant_id=None, prompt=SimpleNamespace(ids=[1, 2]))),
        started=STARTED,
    )

    assert [one async for one in work.chunks(stream=False)] == chunks
    assert work.generation.first_token_ms == first_ms
