"""Put what other people and programs wrote before a judge, so that it is evidence and nothing else.

Three walls. The evidence is one JSON value between two lines with a mark that is made up for each call, so
nothing in it can close the fence. What a chat template might read as a control token ("<|im_end|>", "[INST]",
"</think>") and what no reader can see is written as JSON escapes: the same value, other characters. And the
answer must repeat a ballot number that stands outside the fence only, so an answer found in the evidence,
echoed word for word, is no vote.
"""

import json
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.judging.judge import Message, TurnView

HISTORY_MESSAGES = 8
TEXT_CHARACTERS = 6_000  # of one message; the middle is left out

# "<|", "</", "<s>", "<think>", "[INST]", "[/INST]": but "a < b" and "x[0]" stay readable
_CONTROL = re.compile(r"<(?=[|/!?<\w\uff5c\u2581])|(?<=[|/\w>\uff5c\u2581])>|\[(?=/?[A-Z_]{3,}\])")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Fenced:
    """The evidence as a judge gets it."""

    mark: str
    """Stands at the beginning and the end of the evidence and nowhere in it."""
    ballot: str
    """What the answer must repeat; stands nowhere in the evidence."""
    text: str
    """Mark, JSON, mark."""


def fenced(view: TurnView) -> Fenced:
    """Return a turn as evidence, with a new mark and ballot."""
    evidence = {
        "request": [plain(message) for message in view.request[-HISTORY_MESSAGES:]],
        "reply": plain(view.reply),
        "next_state": [plain(message) for message in view.next_state[-HISTORY_MESSAGES:]],
    }
    text = armoured(evidence)
    while True:
        mark, ballot = f"EVIDENCE-{secrets.token_hex(8)}", secrets.token_hex(4)
        if mark not in text and ballot not in text:
            return Fenced(mark, ballot, f"{mark}\n{text}\n{mark}")


def armoured(value: Any) -> str:
    """Return a value as JSON in which no control token and no invisible character stands as itself."""
    text = _CONTROL.sub(
        lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, indent=1)
    )
    return "".join(
        character
        if character == "\n" or unicodedata.category(character) not in _UNSEEN
        else _escape(character)
        for character in text
    )


def plain(message: Message) -> dict[str, Any]:
    """Return role, text, tool calls and name of a message, each within a limit."""
    plain: dict[str, Any] = {
        "role": str(message.get("role", ""))[:40],
        "content": cut(text_of(message.get("content"))),
    }
    if message.get("tool_calls"):
        plain["tool_calls"] = cut(json.dumps(message["tool_calls"], ensure_ascii=False))
    if message.get("name"):
        plain["name"] = str(message["name"])[:100]
    return plain


def text_of(content: Any) -> str:
    """Return a message's content as text: a string, or the texts of OpenAI's list of parts."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")


def cut(text: str) -> str:
    """Return the beginning and the end of a text that is too long."""
    if len(text) <= TEXT_CHARACTERS:
        return text
    half = TEXT_CHARACTERS // 2
    return f"{text[:half]} […] {text[-half:]}"


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else json.dumps(character)[1:-1]
