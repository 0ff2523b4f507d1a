"""Tools: shown to the model, called by it, answered by the client."""

from typing import Any

import pytest

from apps.gateway.tool_calls import ToolCallReader
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.fake_engine import FakeEngine
from tests.fake_generation import END_OF_TURN, Token
from tests.tenants import Somebody

TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("add", "sub")
]
CALLS = (
    '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "x y"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "sub", "arguments": {}}\n</tool_call>'
)
HI = {"role": "user", "content": "hi"}


def write(engine: FakeEngine, text: str) -> None:
    """Let the engine write a text three characters a token."""
    pieces = [text[i : i + 3] for i in range(0, len(text), 3)]
    tokens = (*(Token(50 + i, piece) for i, piece in enumerate(pieces)), Token(END_OF_TURN, ""))
    engine.reply = lambda _: tokens


def without_ids(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in call.items() if key not in ("id", "index")} for call in calls]


EXPECTED = [
    {"type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":"x y"}'}},
    {"type": "function", "function": {"name": "sub", "arguments": "{}"}},
]


def test_parallel_calls_are_the_same_streamed_and_whole(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    write(engine, f"Let me see.\n{CALLS}")
    engine.delay_s = 0.002

    whole = chat([HI], tools=TOOLS).json()["choices"][0]
    events = frames(chat([HI], tools=TOOLS, stream=True).text)

    assert whole["message"]["content"] == "Let me see."
    assert without_ids(whole["message"]["tool_calls"]) == EXPECTED
    assert whole["finish_reason"] == "tool_calls"
    assert text_of(events) == "Let me see.\n"
    (called,) = [
        event["choices"][0]["delta"]["tool_calls"]
        for event in events[:-1]
        if "tool_calls" in event["choices"][0]["delta"]
    ]
    assert [call["index"] for call in called] == [0, 1]
    assert without_ids(called) == EXPECTED
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"
    first, second = somebody.turns()
    assert first.finish_reason == second.finish_reason == "stop"
    assert first.reply["content"] == "Let me see."
    assert without_ids(first.reply["tool_calls"]) == without_ids(second.reply["tool_calls"]) == EXPECTED
    assert "<tool_call>" not in str(events)


def test_the_model_is_shown_the_tools(chat: Chat, engine: FakeEngine, somebody: Somebody) -> None:
    chat([HI], tools=TOOLS)
    chat([HI], tools=TOOLS, tool_choice="none")
    chat([HI])

    shown, hidden, none = engine.requests
    assert len(shown.input_ids) > len(none.input_ids)
    assert hidden.input_ids == none.input_ids
    assert [bool(turn.tools) for turn in somebody.turns()] == [True, False, False]


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}], ids=["null", "absent", "empty"])
def test_results_continue_the_turn_with_its_exact_tokens(
    chat: Chat, engine: FakeEngine, somebody: Somebody, content: dict[str, Any]
) -> None:
    write(engine, CALLS)
    message = chat([HI], tools=TOOLS).json()["choices"][0]["message"]
    assert message["content"] is None
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": str(i)}
        for i, call in enumerate(message["tool_calls"])
    ]

    said = {"role": "assistant", "tool_calls": message["tool_calls"], **content}
    engine.say("done")
    chat([HI, said, *results], tools=TOOLS)

    first, second = somebody.turns()
    assert second.parent_id == first.id
    assert second.prompt_source == "extended"
    known = [*first.prompt_ids, *first.output_ids]
    assert engine.requests[1].input_ids[: len(known)] == known
    assert first.next_state == results


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n{broken}\n</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',  # which no client may send back
        "a < b and <tool",
        "no call at all",
    ],
)
def test_what_is_no_call_stays_text(chat: Chat, engine: FakeEngine, somebody: Somebody, text: str) -> None:
    write(engine, text)

    assert chat([HI], tools=TOOLS).json()["choices"][0]["message"]["content"] == text
    assert text_of(frames(chat([HI], tools=TOOLS, stream=True).text)) == text
    assert [turn.reply for turn in somebody.turns()] == [{"role": "assistant", "content": text}] * 2


def test_arguments_that_nest_deeper_than_is_written_stay_text() -> None:
    reader = ToolCallReader()
    deep = f'<tool_call>{{"name": "f", "arguments": {{"a": {"[" * 300}{"]" * 300}}}}}</tool_call>'

    assert reader.push(deep) == ""
    assert reader.finish() == (deep, [])


def test_a_call_that_goes_on_in_spaces_is_read_at_once() -> None:
    reader = ToolCallReader()
    endless = "<tool_call>x" + " " * 300_000 + "y"

    assert reader.push(endless) == ""
    assert reader.finish() == (endless, [])


def test_without_tools_nothing_is_read_as_a_call(chat: Chat, engine: FakeEngine) -> None:
    write(engine, CALLS)

    message = chat([HI]).json()["choices"][0]["message"]

    assert message["content"] == CALLS
    assert "tool_calls" not in message


def test_text_is_held_back_only_while_it_may_be_a_call() -> None:
    reader = ToolCallReader()

    assert [reader.push(piece) for piece in ("a <", "b <to", "ol", "x")] == ["a ", "<b ", "", "<toolx"]
    assert reader.finish() == ("", [])


def test_a_call_that_was_cut_before_its_end_mark_still_counts_when_it_is_whole() -> None:
    reader = ToolCallReader()
    reader.push('<tool_call>{"name": "f", "arguments": {}}')

    rest, calls = reader.finish()

    assert rest == ""
    assert [call["function"] for call in calls] == [{"name": "f", "arguments": "{}"}]
