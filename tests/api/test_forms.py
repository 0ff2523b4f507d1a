"""Replies that are held to a form, and what is said of their tokens."""

from typing import Any

import orjson
import pytest

from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.frames import frames
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ADD = {"type": "function", "function": {"name": "add", "parameters": CITY}}
NOW = {"type": "function", "function": {"name": "now"}}


def test_a_schema_goes_to_the_engines_grammar_and_is_stored_with_the_turn(
    chat: Chat, engine: FakeEngine, somebody: Somebody
) -> None:
    engine.say('{"city":', ' "Rome"}')
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": CITY, "strict": True}}

    response = chat("where?", response_format=wanted)

    assert orjson.loads(response.json()["choices"][0]["message"]["content"]) == {"city": "Rome"}
    assert orjson.loads(engine.requests[0].sampling["json_schema"]) == CITY
    # what was written under a grammar was not sampled freely: learning sees that it was
    assert somebody.turns()[0].sampling["json_schema"] == engine.requests[0].sampling["json_schema"]


def test_any_json_object(chat: Chat, engine: FakeEngine) -> None:
    assert chat("hi", response_format={"type": "json_object"}).status_code == 200
    assert orjson.loads(engine.requests[0].sampling["json_schema"]) == {"type": "object"}


def test_plain_text_asks_for_no_grammar(chat: Chat, engine: FakeEngine) -> None:
    assert chat("hi", response_format={"type": "text"}).status_code == 200
    assert "json_schema" not in engine.requests[0].sampling


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"x": "y" * 40_000}}}},
            "response_format.json_schema.schema",
        ),
        ({"response_format": {"type": "json_object"}, "tools": [ADD]}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes", "tools": [ADD]}, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "sub"}}, "tools": [ADD]},
            "tool_choice.function.name",
        ),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    chat: Chat, engine: FakeEngine, fields: dict[str, Any], param: str
) -> None:
    response = chat("hi", **fields)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
    assert engine.requests == []


def test_a_schema_that_the_engine_cannot_compile_is_the_clients_error(chat: Chat, engine: FakeEngine) -> None:
    engine.refuse_next(400, "Failed to compile json grammar: no")

    response = chat("hi", response_format={"type": "json_schema", "json_schema": {"schema": {"type": "no"}}})

    refused(response, 400, "engine_rejected", None)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_call_can_be_forced(chat: Chat, engine: FakeEngine, choice: Any) -> None:
    engine.say('<tool_call>\n{"name": "add", ', '"arguments": {"city": "Rome"}}\n</tool_call>')

    response = chat("hi", tools=[ADD, NOW], tool_choice=choice)

    form = orjson.loads(engine.requests[0].sampling["structural_tag"])["format"]
    tags = form["elements"] if choice == "required" else [form]
    assert [tag["begin"] for tag in tags] == [
        f'<tool_call>\n{{"name": "{name}", "arguments": '
        for name in (["add", "now"] if choice == "required" else ["add"])
    ]
    assert tags[0]["content"] == {"type": "json_schema", "json_schema": CITY}
    assert tags[0]["end"] == "}\n</tool_call>"
    (call,) = response.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": '{"city":"Rome"}'}


def test_the_likeliest_tokens_are_told_streamed_and_not(chat: Chat, engine: FakeEngine) -> None:
    whole = chat("hi", logprobs=True, top_logprobs=2)
    streamed = chat("hi", logprobs=True, top_logprobs=2, stream=True)

    content = whole.json()["choices"][0]["logprobs"]["content"]
    assert engine.requests[0].body["top_logprobs_num"] == 2
    assert len(content) == 5
    for token in content:
        first, second = token["top_logprobs"]
        assert (first["logprob"], first["token"]) == (token["logprob"], token["token"])
        assert second["logprob"] == -9999.0
    told = [
        token
        for event in frames(streamed.text)
        if event != "[DONE]"
        for choice in event["choices"]
        for token in (choice["logprobs"] or {"content": []})["content"]
    ]
    assert told == content


def test_none_are_told_where_none_were_asked_for(chat: Chat, engine: FakeEngine) -> None:
    content = chat("hi", logprobs=True).json()["choices"][0]["logprobs"]["content"]

    assert [token["top_logprobs"] for token in content] == [[]] * 5
    assert "top_logprobs_num" not in engine.requests[0].body


@pytest.mark.parametrize(
    ("fields", "held", "one"),
    [
        ({"parallel_tool_calls": False}, [False, False], True),
        (
            {"tools": [{"type": "function", "function": {**ADD["function"], "strict": True}}, NOW]},
            [True, False],
            False,
        ),
    ],
    ids=["one call at most", "strict"],
)
def test_calls_that_the_model_may_make_are_held_to_what_was_asked(
    chat: Chat, engine: FakeEngine, somebody: Somebody, *, fields: dict[str, Any], held: list[bool], one: bool
) -> None:
    assert chat("hi", **{"tools": [ADD, NOW], **fields}).status_code == 200

    form = orjson.loads(engine.requests[0].sampling["structural_tag"])["format"]
    assert (form["type"], form["triggers"]) == ("triggered_tags", ["<tool_call>"])
    assert (form["at_least_one"], form["stop_after_first"]) == (False, one)
    assert [tag["content"]["json_schema"] == CITY for tag in form["tags"]][:1] == held[:1]
    assert form["tags"][1]["content"]["json_schema"] == {"type": "object"}
    (turn,) = somebody.turns()
    assert turn.tools == [ADD, NOW]  # the model is shown the same


def test_strict_is_true_or_false(chat: Chat, engine: FakeEngine) -> None:
    tool = {"type": "function", "function": {**ADD["function"], "strict": "yes"}}

    refused(chat("hi", tools=[tool]), 400, "invalid_value", "tools[0].function.strict")
