"""What a prompt says beside the client's own messages:
a block in the system message, or a reminder after the question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from apps.conversations.canonical import Message
from apps.engines.chat import with_hint


@dataclass(frozen=True, slots=True)
class Told:
    """What the platform adds to a prompt, and the rows that it was made of."""

    text: str
    """Stands after the operator's own system text."""
    entries: tuple[Mapping[str, Any], ...] = ()
    """{id, revision} of each row, in the order of the text."""
    tokens: int = 0
    """What the rows cost in the block."""
    default_system: str = ""
    """What the model's template says where a chat has no system message
    (`ChatFormat.default_system`); kept before `text`."""
    reminder: str = ""
    """The same in the person's own role: a paragraph after their last message, in place of the block.

    Empty: the model heeds its system message."""

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with the turn."""
        return {
            "text": self.text,
            "entries": [dict(entry) for entry in self.entries],
            "tokens": self.tokens,
            "default_system": self.default_system,
            "reminder": self.reminder,
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """Return what a turn was told; None where that was nothing."""
        if not stored:
            return None
        entries = tuple(stored.get("entries", ()))
        return cls(
            stored["text"],
            entries,
            stored.get("tokens", 0),
            stored.get("default_system", ""),
            stored.get("reminder", ""),
        )


def with_told(messages: Sequence[Message], told: Told | None) -> list[Message]:
    """Return the messages as a prompt that is told something reads them;
    a system message is made where none is.

    The client's messages stay as they are: sessions are stitched over those.
    """
    if told is None:
        return list(messages)
    if told.reminder and _asks(messages):
        return with_reminder(messages, told)
    first = messages[0] if messages else None
    if first is not None and first["role"] == "system":
        content = f"{first['content']}\n\n{told.text}" if first["content"] else told.text
        system, rest = {**first, "content": content}, messages[1:]
    else:
        content = f"{told.default_system}\n\n{told.text}" if told.default_system else told.text
        system, rest = {"role": "system", "content": content}, messages
    return [system, *rest]


def with_reminder(messages: Sequence[Message], told: Told | None) -> list[Message]:
    """Return the messages with the reminder after the person's last one;
    as they are where none is the person's."""
    if told is None or not told.reminder or not _asks(messages):
        return list(messages)
    return with_hint(messages, told.reminder)


def _asks(messages: Sequence[Message]) -> bool:
    return any(message["role"] == "user" for message in messages)
