"""A reply that is written in slices where others wait for its slot:
paused between two tokens, and gone on with later.

The engine knows nothing of it. A pause ends the engine's request; what goes on is a new one whose prompt is
the old one and all tokens that were written. These the engine still has in its prefix cache, which is each
adapter's own. Tokens, log-probabilities and text are the engine's, each from the slice that wrote it.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from apps.engines.chat import chat_format
from apps.engines.client import EngineClient
from apps.engines.replies import Chunk, EngineBroken, Usage
from apps.engines.slots.seats import Seat
from kernel.errors import AttuneError

_STATEFUL: Final = {
    # what the engine counts from the first token of a request, or steers by all of them
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "min_new_tokens", "stop_regex"),
    *("json_schema", "regex", "ebnf", "structural_tag", "custom_params"),
}
_NEUTRAL: Final[tuple[object, ...]] = (None, 0, 0.0, "", [], {})
_CHARACTER: Final = 4
"""Tokens over which one character is spread at most: it has four bytes."""


def resumable(sampling: Mapping[str, Any]) -> bool:
    """Return whether a reply sampled so may be cut in two at any token and be the same reply."""
    return all(
        value in _NEUTRAL or (name == "repetition_penalty" and value == 1.0)
        for name, value in sampling.items()
        if name in _STATEFUL
    )


async def shared_reply(
    client: EngineClient,
    seat: Seat,
    *,
    input_ids: Sequence[int],
    sampling: Mapping[str, Any],
    adapter: str | None,
    stream: bool = True,
    top_logprobs: int = 0,
    decode: Callable[[Sequence[int]], str] | None = None,
) -> AsyncGenerator[Chunk, None]:
    """Yield a reply as `EngineClient.generate` does,
    and give the seat to others between tokens where they wait.

    `seat` is taken when this begins, and when it ends in whatever way. Not paused are replies whose sampling
    has a memory (penalties, a grammar), and those asked for whole (`stream` False) while nobody waited. A
    pause comes after `Seat.slice_tokens` tokens, never within a character nor within what may become a stop
    string: so no stop string is split. `sampling` must say `max_new_tokens`. Raises what the client raises;
    after the first token only EngineBroken.
    """
    pausable = resumable(sampling) and (stream or seat.contended)
    if not pausable:
        seat.pin()
    written: list[int] = []
    first: Usage | None = None
    while True:
        since = len(written)
        asked = {**sampling, "max_new_tokens": sampling["max_new_tokens"] - since}
        source = client.generate(
            input_ids=[*input_ids, *written],
            sampling=asked if since else sampling,
            adapter=adapter,
            stream=stream or pausable,
            top_logprobs=top_logprobs,
        )
        paused = False
        try:
            async with aclosing(source):
                async for chunk in source:
                    written.extend(chunk.output_ids)
                    first = first or chunk.usage
                    if since:
                        chunk = replace(chunk, usage=replace(first, completion_tokens=len(written)))  # noqa: PLW2901
                    yield chunk
                    paused = (
                        pausable
                        and seat.asked_back
                        and len(written) - since >= seat.slice_tokens
                        and chunk.finish_reason is None
                        and not chunk.held_back
                        and not chunk.misaligned
                        and len(written) < sampling["max_new_tokens"]
                        and not (decode or chat_format().decode)(written[-_CHARACTER:]).endswith("\ufffd")
                    )
                    if paused:
                        break
            if not paused:
                return
            seat.give_back()
            await seat.take()
        except AttuneError as error:
            if not written or isinstance(error, EngineBroken):
                raise
            raise EngineBroken(f"the reply could not be gone on with: {error.message}") from error
