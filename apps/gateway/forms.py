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


def read_call_form(
    choice: Any, tools: list[dict[str, Any]] | None, *, strict: frozenset[str], at_most_one: bool
) -> str | None:
    """Return the form that calls must have, as the engine's structural tag, or None where the model is free.

    `choice` is "required" (the reply is a call of any of the tools), names one of them (it is a call of
    that), or leaves it to the model. Then only the arguments of `strict` tools are held to their schema, and
    `at_most_one` call is written where that was asked for.
    """
    if choice == "none" or tools is None:
        return None
    functions = [tool["function"] for tool in tools]
    if choice in (None, "auto"):
        if not strict and not at_most_one:
            return None
        tags = [_tag(function, held=function["name"] in strict) for function in functions]
        form = {
            "type": "triggered_tags",
            "triggers": [CALL_BEGINS],
            "tags": tags,
            "at_least_one": False,
            "stop_after_first": at_most_one,
        }
    else:
        if choice != "required":
            asked = fields.mapping(choice, "tool_choice")
            named = fields.mapping(asked.get("function"), "tool_choice.function").get("name")
            functions = [function for function in functions if function["name"] == named]
            if not functions:
                raise fields.wrong("tool_choice.function.name", "the name of one of the `tools`")
        tags = [_tag(function, held=True) for function in functions]
        form = tags[0] if len(tags) == 1 else {"type": "or", "elements": tags}
    return _as_text({"type": "structural_tag", "format": form}, "tools")


def _tag(function: dict[str, Any], *, held: bool) -> dict[str, Any]:
    schema = (function.get("parameters") if held else None) or {"type": "object"}
    return {
        "type": "tag",
        "begin": f'{CALL_BEGINS}\n{{"name": {orjson.dumps(function["name"]).decode()}, "arguments": ',
        "content": {"type": "json_schema", "json_schema": schema},
        "end": f"}}\n{CALL_ENDS}",
    }


def _as_text(value: object, field: str) -> str:
    text = orjson.dumps(value)
    if len(text) > _LARGEST_SCHEMA:
        raise fields.wrong(field, f"at most {_LARGEST_SCHEMA} bytes")
    return text.decode()
