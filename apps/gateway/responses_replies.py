"""Replies of `/v1/responses`: whole, and as the events of a stream."""

import uuid
from collections.abc import Sequence
from typing import Any, Self

import orjson

from apps.gateway.errors import error_object
from apps.gateway.parameters import ChatRequest
from kernel.errors import AttuneError

Item = dict[str, Any]


class ResponseShape:
    """What all events of one reply have in common; it counts them, so it is for one reply only."""

    def __init__(self, *, turn_id: uuid.UUID, created: int, ask: ChatRequest) -> None:
        self._turn = turn_id.hex
        self._created = created
        self._ask = ask
        self._sequence = 0
        self._text = ""
        self._begun = False
        self._items: list[Item] = []

    @classmethod
    def of(cls, *, turn_id: uuid.UUID, created: int, ask: ChatRequest, fingerprint: str) -> Self:
        """Return the shape of the reply to `ask`."""
        del fingerprint  # these replies have no place for it; the headers name the version
        return cls(turn_id=turn_id, created=created, ask=ask)

    def whole(
        self,
        *,
        message: dict[str, Any],
        finish_reason: str,
        usage: dict[str, int],
        logprobs: dict[str, Any] | None,
    ) -> bytes:
        """Return the body of a reply that is not streamed."""
        del logprobs
        items = [self._message(message["content"])] if message["content"] else []
        items += [self._call(i, call) for i, call in enumerate(message.get("tool_calls") or [])]
        return orjson.dumps(self._response(items or [self._message("")], finish_reason, usage))

    def opening(self) -> bytes:
        """Return the first events: the reply has begun."""
        response = self._response([], None, None)
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def content(self, text: str, logprobs: dict[str, Any] | None) -> bytes:
        """Return the event of more text."""
        del logprobs
        self._text += text
        return self._begin() + self._event(
            "response.output_text.delta", **self._place(), delta=text, logprobs=[]
        )

    def calls(self, calls: Sequence[dict[str, Any]]) -> bytes:
        """Return the events of whole tool calls."""
        out = self._end()
        for i, call in enumerate(calls):
            item = self._call(i, call)
            where = {"item_id": item["id"], "output_index": len(self._items)}
            open_item = {**item, "arguments": "", "status": "in_progress"}
            arguments = item["arguments"]
            out += self._event(
                "response.output_item.added", output_index=where["output_index"], item=open_item
            )
            out += self._event("response.function_call_arguments.delta", **where, delta=arguments)
            out += self._event(
                "response.function_call_arguments.done", **where, arguments=arguments, name=item["name"]
            )
            out += self._event("response.output_item.done", output_index=where["output_index"], item=item)
            self._items.append(item)
        return out

    def closing(self, finish_reason: str, usage: dict[str, int]) -> bytes:
        """Return the last events."""
        out = b"" if self._items else self._begin()
        out += self._end()
        response = self._response(self._items, finish_reason, usage)
        return out + self._event(f"response.{response['status']}", response=response)

    def failure(self, error: AttuneError) -> bytes:
        """Return the event that ends a stream which failed."""
        inner = error_object(error)["error"]
        said = {name: inner[name] for name in ("code", "message", "param")}
        return self._event("error", **said, error=inner)

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        item = {**self._message(""), "status": "in_progress", "content": []}
        return self._event("response.output_item.added", output_index=0, item=item) + self._event(
            "response.content_part.added", **self._place(), part=_part("")
        )

    def _end(self) -> bytes:
        """Close the message, if there is one that is open."""
        if not self._begun or self._items:
            return b""
        item = self._message(self._text)
        self._items.append(item)
        return (
            self._event("response.output_text.done", **self._place(), text=self._text, logprobs=[])
            + self._event("response.content_part.done", **self._place(), part=_part(self._text))
            + self._event("response.output_item.done", output_index=0, item=item)
        )

    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self._turn}", "output_index": 0, "content_index": 0}

    def _message(self, text: str) -> Item:
        return {
            "type": "message",
            "id": f"msg_{self._turn}",
            "status": "completed",
            "role": "assistant",
            "content": [_part(text)],
        }

    def _call(self, number: int, call: dict[str, Any]) -> Item:
        return {
            "type": "function_call",
            "id": f"fc_{self._turn}{number}",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "status": "completed",
        }

    def _response(
        self, items: Sequence[Item], finish_reason: str | None, usage: dict[str, int] | None
    ) -> dict[str, Any]:
        cut = finish_reason == "length"
        ended = "incomplete" if cut else "completed"
        ask = self._ask
        return {
            "id": f"resp_{self._turn}",
            "object": "response",
            "created_at": self._created,
            "status": "in_progress" if finish_reason is None else ended,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": None,
            "max_output_tokens": ask.sampling.get("max_tokens"),
            "model": ask.model,
            "output": list(items),
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "store": True,
            "temperature": ask.sampling.get("temperature"),
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [{"type": "function", "strict": None, **tool["function"]} for tool in ask.tools or []],
            "top_p": ask.sampling.get("top_p"),
            "truncation": "disabled",
            "usage": None if usage is None else _usage(usage),
            "user": ask.end_user,
            "metadata": {},
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: dict[str, int]) -> dict[str, Any]:
    read, written = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
