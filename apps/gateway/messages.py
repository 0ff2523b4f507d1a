"""Check a request's messages and tools and bring them into canonical form."""

import re
from typing import Any

from apps.conversations.canonical import Message, canonical_message
from apps.gateway.fields import Body, mapping, only, unsupported, wrong
from apps.gateway.tool_calls import LONGEST_NAME
from kernel.errors import InvalidInput

_ROLES = ("system", "developer", "user", "assistant", "tool")
_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MOST_TOOLS = 128


def read_messages(value: Any) -> list[Message]:
    """Return the canonical messages; raises InvalidInput naming the part that is wrong."""
    if not isinstance(value, list) or not value:
        raise wrong("messages", "a list of at least one message")
    return [_message(mapping(one, f"messages[{i}]"), f"messages[{i}]") for i, one in enumerate(value)]


def read_tools(value: Any) -> list[dict[str, Any]] | None:
    """Return the functions that the model may call, or None where there is none."""
    if value is None or value == []:
        return None
    if not isinstance(value, list) or len(value) > _MOST_TOOLS:
        raise wrong("tools", f"a list of at most {_MOST_TOOLS} tools")
    return [_tool(mapping(one, f"tools[{i}]"), f"tools[{i}]") for i, one in enumerate(value)]


def _message(message: Body, at: str) -> Message:
    role = message.get("role")
    if role not in _ROLES:
        raise wrong(f"{at}.role", f"one of {', '.join(_ROLES)}")
    only(message, at, _KEYS)
    calls = message.get("tool_calls")
    if calls:
        if role != "assistant":
            raise wrong(f"{at}.tool_calls", "absent: only an assistant calls tools")
        message = {**message, "tool_calls": _calls(calls, f"{at}.tool_calls")}
    if role == "tool" and not _is_text(message.get("tool_call_id")):
        raise wrong(f"{at}.tool_call_id", "the id of the call that this message answers")
    if role != "tool" and message.get("tool_call_id") is not None:
        raise wrong(f"{at}.tool_call_id", "absent: only a `tool` message answers a call")
    if message.get("name") is not None and not _is_text(message["name"]):
        raise wrong(f"{at}.name", "a string")
    _check_content(message.get("content"), f"{at}.content", may_be_absent=bool(calls))
    return canonical_message(message)


def _check_content(content: Any, at: str, *, may_be_absent: bool) -> None:
    if isinstance(content, str) or (content is None and may_be_absent):
        return
    if not isinstance(content, list) or not content:
        raise wrong(at, "a string or a list of text parts")
    for i, part in enumerate(content):
        place = f"{at}[{i}]"
        kind = mapping(part, place).get("type")
        if kind != "text":
            named = f"A part of type `{kind}`" if _is_text(kind) else "A part without a `type`"
            raise unsupported(place, named)
        if not isinstance(part.get("text"), str):
            raise wrong(f"{place}.text", "a string")


def _calls(calls: Any, at: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise wrong(at, "a list of calls")
    return [_call(mapping(call, f"{at}[{i}]"), f"{at}[{i}]") for i, call in enumerate(calls)]


def _call(call: Body, at: str) -> dict[str, Any]:
    function = mapping(call.get("function"), f"{at}.function")
    if call.get("type", "function") != "function":
        raise unsupported(f"{at}.type", "A call of another type than `function`")
    if not _is_text(call.get("id")):
        raise wrong(f"{at}.id", "a string")
    if not _is_text(function.get("name")):
        raise wrong(f"{at}.function.name", "a string")
    if not isinstance(function.get("arguments"), str):
        raise wrong(f"{at}.function.arguments", "a string of JSON")
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


def _tool(tool: Body, at: str) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise unsupported(f"{at}.type", "A tool of another type than `function`")
    function = mapping(tool.get("function"), f"{at}.function")
    only(function, f"{at}.function", frozenset({"name", "description", "parameters", "strict"}))
    name = function.get("name")
    if not isinstance(name, str) or not _FUNCTION_NAME.fullmatch(name):
        raise wrong(f"{at}.function.name", "1 to 64 letters, digits, dots, hyphens or underscores")
    if not isinstance(function.get("strict"), bool | None):
        raise wrong(f"{at}.function.strict", "true or false")
    if function.get("description") is not None and not isinstance(function["description"], str):
        raise wrong(f"{at}.function.description", "a string")
    if function.get("parameters") is not None:
        mapping(function["parameters"], f"{at}.function.parameters")
    kept = {
        key: function[key] for key in ("name", "description", "parameters") if function.get(key) is not None
    }
    return {"type": "function", "function": kept}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME


def check_template_takes(
    messages: list[Message], tools: list[dict[str, Any]] | None, *, knows_tools: bool
) -> None:
    """Refuse tools and their calls and results where the model's template would drop them silently."""
    if knows_tools:
        return
    if tools:
        raise InvalidInput("This model does not take `tools`.", field="tools", code="unsupported_parameter")
    for i, message in enumerate(messages):
        if message["role"] == "tool" or "tool_calls" in message:
            raise unsupported(f"messages[{i}]", "A tool call or its result, with this model,")
