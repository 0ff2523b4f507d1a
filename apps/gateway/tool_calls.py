"""Find the calls in what a model wrote: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

That is how Hermes-style templates (Qwen's among them) teach models to call tools.
"""

import re
import secrets
from typing import Any

import orjson

CALL_BEGINS = "<tool_call>"
"""What marks a call in a reply's text."""
CALL_ENDS = "</tool_call>"
LONGEST_NAME = 512
"""Of a function that is called: as much as a client may send back."""
# no spaces around what is between: where they may be in two places,
# a run of them is tried in each way to share it
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


class ToolCallReader:
    """Reads a reply as it comes: text before the first call can be given out at once, calls are held back."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str) -> str:
        """Take in more text and return what is certainly no part of a call."""
        self._held += text
        start = self._held.find(CALL_BEGINS)
        if start < 0:
            start = len(self._held) - _begun(self._held)
        given, self._held = self._held[:start], self._held[start:]
        return given

    def finish(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the text that is left and the calls; where a call is malformed all of it is text."""
        calls = [_parsed(match[1].strip()) for match in _CALL.finditer(self._held)]
        if not calls or None in calls:
            return self._held, []
        return _CALL.sub("", self._held).strip(), [call for call in calls if call is not None]


def _begun(text: str) -> int:
    """Return the length of the longest end of `text` that may be the beginning of a call."""
    return next(
        (n for n in range(min(len(CALL_BEGINS) - 1, len(text)), 0, -1) if text.endswith(CALL_BEGINS[:n])), 0
    )


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        call = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        return None
    try:
        written = orjson.dumps(arguments).decode()
    except orjson.JSONEncodeError:  # nested deeper than is written
        return None
    function = {"name": name, "arguments": written}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}
