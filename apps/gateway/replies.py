"""Replies in OpenAI's shape: whole, and as the frames of a stream."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apps.engines.chat import chat_format

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
        return uuid.UUID(named.removeprefix("chatcmpl-"))
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


def logprobs_object(ids: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """Return OpenAI's logprobs of these tokens (of the distribution that was sampled from)."""
    decode = chat_format().decode
    content = []
    for token, logprob in zip(ids, logprobs, strict=False):
        text = decode([token])
        content.append({"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []})
    return {"content": content, "refusal": None}


@dataclass(frozen=True, slots=True)
class Shape:
    """What all frames of one reply have in common."""

    turn_id: uuid.UUID
    created: int
    model: str
    fingerprint: str
    include_usage: bool = False
    logprobs: bool = False

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
