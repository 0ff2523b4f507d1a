"""A reply of a real engine that makes room for others and goes on."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apps.engines.replies import Chunk
from apps.engines.slots import Seat
from apps.engines.slots.sharing import shared_reply
from embedded.engine import Engine
from tests.apps.adapters.files import write_adapter
from tests.apps.engines.real_engine import PROMPTS, client_of, smaller

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]


class Pressed(Seat):
    """A seat that is asked back after so many tokens, always."""

    def __init__(self, least: int) -> None:
        super().__init__(None, "", self._enter_again, least)
        self.pauses = 0

    @property
    def asked_back(self) -> bool:
        return True

    async def _enter_again(self) -> None:
        self.pauses += 1


async def test_a_reply_that_pauses_for_others_is_the_reply_that_does_not(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    write_adapter(tmp_path / "one", model, seed=1, change=smaller)
    name = f"p{uuid.uuid4().hex[:8]}-v1-aa"
    sampling = {"max_new_tokens": 300, "temperature": 0.0, "ignore_eos": True}
    async with client_of(engine) as client:
        await client.load(name, str(tmp_path / "one"))
        asked: dict[str, Any] = {
            "input_ids": PROMPTS[0],
            "sampling": sampling,
            "adapter": name,
            "top_logprobs": 2,
        }
        whole = await collected(client.generate(**asked))
        for least in (1, 5):
            seat = Pressed(least)
            sliced = await collected(shared_reply(client, seat, **asked))
            assert seat.pauses >= 1
            assert (sliced["ids"], sliced["text"], sliced["end"]) == (whole["ids"], whole["text"], "length")
            assert sliced["logprobs"] == pytest.approx(whole["logprobs"], abs=1e-6)
            assert [[token for token, _ in one] for one in sliced["top"]] == [
                [token for token, _ in one] for one in whole["top"]
            ]
        await client.unload(name)


async def test_a_stop_string_across_a_pause_ends_the_reply_as_without_one(engine: Engine) -> None:
    sampling = {"max_new_tokens": 24, "temperature": 0.0, "ignore_eos": True}
    async with client_of(engine) as client:
        asked: dict[str, Any] = {"input_ids": PROMPTS[1], "sampling": sampling, "adapter": None}
        text = (await collected(client.generate(**asked)))["text"]
        for begin in range(4, 10):
            asked["sampling"] = {**sampling, "stop": [text[begin : begin + 6]]}
            whole = await collected(client.generate(**asked))
            sliced = await collected(shared_reply(client, Pressed(1), **asked))
            assert whole["end"] == "stop"
            assert (sliced["ids"], sliced["text"], sliced["end"]) == (
                whole["ids"],
                whole["text"],
                whole["end"],
            )


async def collected(source: AsyncIterator[Chunk]) -> dict[str, Any]:
    """Return a whole reply: ids, logprobs, top, text, end."""
    chunks = [chunk async for chunk in source]
    return {
        "ids": [token for chunk in chunks for token in chunk.output_ids],
        "logprobs": [value for chunk in chunks for value in chunk.output_logprobs],
        "top": [one for chunk in chunks for one in chunk.top_logprobs],
        "text": "".join(chunk.text for chunk in chunks),
        "end": chunks[-1].finish_reason,
    }
