"""Replies in OpenAI's shape: whole, and as the frames of a stream."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import orjson

from apps.engines.chat import chat_format
from apps.gateway.errors import error_object
from apps.gateway.parameters import ChatRequest
from kernel.errors import AttuneError

DONE = b"data: [DONE]\n\n"


def frame(value: object) -> bytes:
    """Return one event of a stream."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def completion_id(turn_id: uuid.UUID) -> str:
    """Return the id under which a client knows a turn's reply."""
    return f"chatcmpl-{turn_id.hex}"


def turn_id_of(named: str) -> uuid.UUID | None:
    """Return the turn behind a turn's id or a completion's id, or None where it is neither."""
    try:
        return uuid.UUID(named.removeprefix("chatcmpl-").removeprefix("resp_"))
    except ValueError:
        return None


def usage_object(usage: dict[str, int]) -> dict[str, Any]:
    """Return OpenAI's usage object of a turn's stored usage."""
    prompt, completion = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
    }


def logprobs_object(
    ids: Sequence[int], logprobs: Sequence[float], top: Sequence[Sequence[tuple[int, float]]] = ()
) -> dict[str, Any]:
    """Return OpenAI's logprobs of these tokens (of the distribution that was sampled from).

    `top`: for each token the likeliest ones, where they were asked for.
    """
    content = []
    for place, (token, logprob) in enumerate(zip(ids, logprobs, strict=False)):
        likeliest = [_scored(*one) for one in top[place]] if place < len(top) else []
        content.append({**_scored(token, logprob), "top_logprobs": likeliest})
    return {"content": content, "refusal": None}


def _scored(token: int, logprob: float) -> dict[str, Any]:
    text = chat_format().decode([token])
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


class ReplyShape(Protocol):
    """How an API says what became of a request."""

    def whole(
        self,
        *,
        message: dict[str, Any],
        finish_reason: str,
        usage: dict[str, int],
        logprobs: dict[str, Any] | None,
    ) -> bytes:
        """Return the body of a reply that is not streamed."""

    def opening(self) -> bytes:
        """Return what a stream begins with."""

    def content(self, text: str, logprobs: dict[str, Any] | None) -> bytes:
        """Return what says more text."""

    def calls(self, calls: Sequence[dict[str, Any]]) -> bytes:
        """Return what says whole tool calls."""

    def closing(self, finish_reason: str, usage: dict[str, int]) -> bytes:
        """Return what a stream ends with."""

    def failure(self, error: AttuneError) -> bytes:
        """Return what ends a stream that failed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What all frames of one reply have in common."""

    turn_id: uuid.UUID
    created: int
    model: str
    fingerprint: str
    include_usage: bool = False

    @classmethod
    def of(cls, *, turn_id: uuid.UUID, created: int, ask: ChatRequest, fingerprint: str) -> Self:
        """Return the shape of the reply to `ask`."""
        return cls(turn_id, created, ask.model, fingerprint, ask.include_usage)

    def failure(self, error: AttuneError) -> bytes:
        """Return the frame that ends a stream which failed: no clean finish follows it."""
        return frame(error_object(error))

    def whole(
        self,
        *,
        message: dict[str, Any],
        finish_reason: str,
        usage: dict[str, int],
        logprobs: dict[str, Any] | None,
    ) -> bytes:
        """Return the body of a reply that is not streamed."""
        content = {"role": "assistant", "content": message["content"], "refusal": None}
        if message.get("tool_calls"):
            content["tool_calls"] = message["tool_calls"]
        choice = {"index": 0, "message": content, "logprobs": logprobs, "finish_reason": finish_reason}
        return orjson.dumps(
            {
                "id": completion_id(self.turn_id),
                "object": "chat.completion",
                "created": self.created,
                "model": self.model,
                "system_fingerprint": self.fingerprint,
                "choices": [choice],
                "usage": usage_object(usage),
            }
        )

    def opening(self) -> bytes:
        """Return the first frame: who speaks."""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def content(self, text: str, logprobs: dict[str, Any] | None) -> bytes:
        """Return a frame of text."""
        return self._chunk({"content": text}, None, logprobs)

    def calls(self, calls: Sequence[dict[str, Any]]) -> bytes:
        """Return a frame with whole tool calls."""
        return self._chunk({"tool_calls": [{"index": i, **call} for i, call in enumerate(calls)]}, None)

    def closing(self, finish_reason: str, usage: dict[str, int]) -> bytes:
        """Return the last frames: why it ended, the usage where it was asked for, the end."""
        last = self._chunk({}, finish_reason)
        if self.include_usage:
            last += frame({**self._head(), "choices": [], "usage": usage_object(usage)})
        return last + DONE

    def _chunk(
        self, delta: dict[str, Any], finish_reason: str | None, logprobs: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        value = {**self._head(), "choices": [choice]}
        if self.include_usage:
            value["usage"] = None
        return frame(value)

    def _head(self) -> dict[str, Any]:
        return {
            "id": completion_id(self.turn_id),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }
