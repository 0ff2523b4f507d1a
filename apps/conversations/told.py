"""What a prompt says beside the client's own messages: text that the platform puts into the system message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.conversations.canonical import Message


@dataclass(frozen=True, slots=True)
class Told:
    """A block of text for the system message, and the rows that it was made of."""

    text: str
    entries: tuple[Mapping[str, Any], ...] = ()
    """{id, revision} of each row, in the order of the text."""
    tokens: int = 0
    """What the rows cost in the prompt."""

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with the turn."""
        return {"text": self.text, "entries": [dict(entry) for entry in self.entries], "tokens": self.tokens}


def with_told(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with `text` after the operator's own system text; a system message is made where none is.

    The client's messages stay as they are: sessions are stitched over those.
    """
    if not text:
        return list(messages)
    first = messages[0] if messages else None
    if first is not None and first["role"] == "system":
        return [
            {**first, "content": f"{first['content']}\n\n{text}" if first["content"] else text},
            *messages[1:],
        ]
    return [{"role": "system", "content": text}, *messages]
