"""Forms that a reply may be held to: JSON of a schema, a call of a tool. The engine's grammar does it."""

from typing import Any

import orjson

from apps.gateway import fields
from apps.gateway.tool_calls import CALL_BEGINS, CALL_ENDS

_LARGEST_SCHEMA = 32_000  # bytes; compiling a grammar costs the engine time


def read_response_format(value: Any) -> str | None:
    """Return the JSON schema that the reply must be of, as text, or None where it is free."""
    if value is None:
        return None
    wanted = fields.mapping(value, "response_format")
    kind = wanted.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return '{"type":"object"}'
    if kind != "json_schema":
        raise fields.unsupported(
            "response_format", "Another type than `text`, `json_object` and `json_schema`"
        )
    inner = fields.mapping(wanted.get("json_schema"), "response_format.json_schema")
    known = frozenset({"name", "description", "schema", "strict"})
    fields.only(inner, "response_format.json_schema", known)
    schema = fields.mapping(inner.get("schema"), "response_format.json_schema.schema")
    return _as_text(schema, "response_format.json_schema.schema")


def read_forced_call(choice: Any, tools: list[dict[str, Any]] | None) -> str | None:
    """Return the form of a reply that begins with a call, as the engine's structural tag, or None where it is free.

    `choice` is "required" (of any of the tools) or names one of them.
    """
    if choice in (None, "auto", "none") or tools is None:
        return None
    functions = [tool["function"] for tool in tools]
    if choice != "required":
        asked = fields.mapping(choice, "tool_choice")
        named = fields.mapping(asked.get("function"), "tool_choice.function").get("name")
        functions = [function for function in functions if function["name"] == named]
        if not functions:
            raise fields.wrong("tool_choice.function.name", "the name of one of the `tools`")
    tags = [
        {
            "type": "tag",
            "begin": f'{CALL_BEGINS}\n{{"name": {orjson.dumps(function["name"]).decode()}, "arguments": ',
            "content": {
                "type": "json_schema",
                "json_schema": function.get("parameters") or {"type": "object"},
            },
            "end": f"}}\n{CALL_ENDS}",
        }
        for function in functions
    ]
    form = tags[0] if len(tags) == 1 else {"type": "or", "elements": tags}
    return _as_text({"type": "structural_tag", "format": form}, "tools")


def _as_text(value: object, field: str) -> str:
    text = orjson.dumps(value)
    if len(text) > _LARGEST_SCHEMA:
        raise fields.wrong(field, f"at most {_LARGEST_SCHEMA} bytes")
    return text.decode()
