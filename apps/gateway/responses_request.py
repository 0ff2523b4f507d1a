"""Read the body of `POST /v1/responses`: the same chat in OpenAI's newer words."""

from typing import Any

from apps.gateway import fields
from apps.gateway.parameters import ChatRequest, read_chat_request
from kernel.errors import InvalidInput

# what both call the same
_SAME = (
    "model",
    "stream",
    "temperature",
    "top_p",
    "user",
    "session_id",
    "chat_template_kwargs",
    "tool_choice",
)
_READ = frozenset(
    {*_SAME, "input", "instructions", "max_output_tokens", "tools", "text", "parallel_tool_calls"}
)
# asked for with these values they change nothing here
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "store": (None, True),
    "truncation": (None, "disabled"),
    "background": (None, False),
    "include": (None, []),
    "metadata": (None, {}),
    "stream_options": (None, {}),
    "service_tier": (None, "auto", "default"),
}
_KNOWN_UNSUPPORTED = frozenset(
    {
        *("previous_response_id", "conversation", "prompt", "reasoning", "max_tool_calls", "top_logprobs"),
        *("prompt_cache_key", "safety_identifier"),
    }
)
_NAMES = {"messages": "input", "max_completion_tokens": "max_output_tokens", "response_format": "text.format"}


def read_responses_request(body: dict[str, Any]) -> ChatRequest:
    """Return the request in `body`; raises InvalidInput naming the first thing that is wrong or unserved."""
    _refuse_others(body)
    chat: dict[str, Any] = {name: body[name] for name in _SAME if name in body}
    chat["messages"] = _instructions(body.get("instructions")) + _messages(body.get("input"))
    chat["max_completion_tokens"] = body.get("max_output_tokens")
    chat["parallel_tool_calls"] = body.get("parallel_tool_calls")
    chat["tools"] = _tools(body.get("tools"))
    chat["tool_choice"] = _tool_choice(body.get("tool_choice"), has_tools=bool(chat["tools"]))
    chat["response_format"] = _format(body.get("text"))
    try:
        return read_chat_request(chat)
    except InvalidInput as error:
        for ours, theirs in _NAMES.items():
            if error.field is not None and error.field.startswith(ours):
                raise InvalidInput(
                    error.message.replace(f"`{ours}", f"`{theirs}"),
                    field=error.field.replace(ours, theirs, 1),
                    code=error.code,
                ) from error
        raise


def _refuse_others(body: dict[str, Any]) -> None:
    for name, value in body.items():
        if name in _READ:
            continue
        if name in _HARMLESS:
            if value not in _HARMLESS[name] or (isinstance(value, int) and not isinstance(value, bool)):
                raise fields.unsupported(name, f"This value of `{name}`")
        elif name in _KNOWN_UNSUPPORTED:
            if value is not None:
                raise InvalidInput(
                    f"Unsupported parameter: `{name}`.", field=name, code="unsupported_parameter"
                )
        else:
            raise fields.unknown("", name)


def _instructions(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, str):
        raise fields.wrong("instructions", "a string")
    return [{"role": "system", "content": value}]


def _messages(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise fields.wrong("input", "a string or a list of at least one item")
    messages: list[dict[str, Any]] = []
    for i, one in enumerate(value):
        at = f"input[{i}]"
        item = fields.mapping(one, at)
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": _content(item.get("content"), at)})
        elif kind == "function_call":
            # what one reply said and called are items of their own here, and one message there
            if not messages or messages[-1].get("role") != "assistant":
                messages.append({"role": "assistant", "content": None})
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": item.get("call_id"),
                    "content": _content(item.get("output"), at),
                }
            )
        else:
            shown = kind[:100] if isinstance(kind, str) else "that"
            raise fields.unsupported(at, f"An item of type `{shown}`")
    return messages


def _content(value: Any, at: str) -> Any:
    if not isinstance(value, list):
        return value
    parts: list[dict[str, Any]] = []
    for i, one in enumerate(value):
        part = fields.mapping(one, f"{at}.content[{i}]")
        if part.get("type") not in ("input_text", "output_text", "text"):
            kind = part.get("type")
            raise fields.unsupported(
                f"{at}.content[{i}]",
                f"A part of type `{kind[:100]}`" if isinstance(kind, str) else "A part without a `type`",
            )
        parts.append({"type": "text", "text": part.get("text")})
    return parts


def _tools(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tools: list[dict[str, Any]] = []
    for i, one in enumerate(value):
        tool = fields.mapping(one, f"tools[{i}]")
        function = {name: part for name, part in tool.items() if name != "type"}
        tools.append({"type": tool.get("type"), "function": function})
    return tools


def _tool_choice(value: Any, *, has_tools: bool) -> Any:
    if value == "auto" and not has_tools:
        return None
    if isinstance(value, dict) and value.get("type") == "function":
        return {"type": "function", "function": {"name": value.get("name")}}
    return value


def _format(value: Any) -> Any:
    if value is None:
        return None
    text = fields.mapping(value, "text")
    fields.only(text, "text", frozenset({"format"}))
    wanted = text.get("format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        inner = {name: part for name, part in wanted.items() if name != "type"}
        return {"type": "json_schema", "json_schema": inner}
    return wanted
