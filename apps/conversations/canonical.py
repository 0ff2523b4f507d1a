"""Messages in the one form that is stored, compared and rendered, and the hash chain over them.

Two requests that mean the same conversation have the same canonical messages, whatever spelling the
client uses (`developer`, a list of text parts, `content` null or absent beside tool calls).
"""

import contextlib
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

Message = dict[str, Any]

# Half a surrogate pair is no character (UTF-8 has no bytes for it) and Postgres stores no NUL.
_NO_CHARACTER = re.compile("[\ud800-\udfff\x00]")
_START = hashlib.sha256(b"attune conversation").hexdigest()


def clean(value: Any) -> Any:
    """Return a JSON value in which what cannot be stored as text reads U+FFFD."""
    if isinstance(value, str):
        return _NO_CHARACTER.sub("\ufffd", value) if _NO_CHARACTER.search(value) else value
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def canonical_message(message: Mapping[str, Any]) -> Message:
    """Return one message of the OpenAI form in canonical form, cleaned.

    Text parts are joined, `developer` reads `system`, what is null or empty is left out; `content` is
    always there, None where an assistant only calls tools.
    """
    role = "system" if message["role"] == "developer" else message["role"]
    content = message.get("content")
    if isinstance(content, list | tuple):
        content = "".join(part["text"] for part in content)
    plain: Message = {"role": role, "content": content}
    for name in ("name", "tool_calls", "tool_call_id"):
        if message.get(name):
            plain[name] = message[name]
    if plain["content"] is None and "tool_calls" not in plain:
        plain["content"] = ""
    cleaned: Message = clean(plain)
    return cleaned


def chain(messages: Sequence[Message], start: str = _START) -> list[str]:
    """Return the chain's value (hex SHA-256) after each canonical message."""
    values: list[str] = []
    for message in messages:
        start = extend_chain(start, message)
        values.append(start)
    return values


def extend_chain(value: str, message: Message) -> str:
    """Return the chain's value after one more canonical message."""
    return hashlib.sha256(value.encode() + link(message)).hexdigest()


def link(message: Message) -> bytes:
    """Return what a canonical message adds to the chain: a value is the hash of the one before and this."""
    return orjson.dumps(_compared(message), option=orjson.OPT_SORT_KEYS)


def same_message(one: Message, other: Message) -> bool:
    """Return whether two canonical messages count as the same."""
    return _compared(one) == _compared(other)


def _compared(message: Message) -> Message:
    content = message.get("content") or ""
    if message["role"] == "assistant":
        content = content.strip()  # many clients trim a reply before they keep it
    if "tool_calls" not in message:
        return {**message, "content": content}
    return {
        **message,
        "content": content,
        "tool_calls": [_compared_call(one) for one in message["tool_calls"]],
    }


def _compared_call(call: Mapping[str, Any]) -> dict[str, Any]:
    # clients that read a call's arguments write them anew, with other spaces or another order
    function = call["function"]
    # what nests deeper than is written compares as its text
    with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):
        arguments = orjson.loads(function["arguments"])
        function = {
            **function,
            "arguments": orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode(),
        }
    return {**call, "function": function}
