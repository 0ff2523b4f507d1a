"""Read a stream's frames."""

import json
from typing import Any


def frames(text: str) -> list[Any]:
    """Return the events of a stream: objects, and the string "[DONE]"."""
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [event if event == "[DONE]" else json.loads(event) for event in events]


def text_of(events: list[Any]) -> str:
    """Return the reply's text in a stream's events."""
    deltas = [event["choices"][0]["delta"] for event in events if event != "[DONE]" and event.get("choices")]
    return "".join(delta.get("content") or "" for delta in deltas)
