"""One form for what means the same."""

import pytest

from apps.conversations.canonical import canonical_message, chain, clean, extend_chain, same_message

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ({"role": "developer", "content": "x"}, {"role": "system", "content": "x"}),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": "ab"},
        ),
        (
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
        ),
        (
            {"role": "tool", "content": "4", "tool_call_id": "c1"},
            {"role": "tool", "content": "4", "tool_call_id": "c1"},
        ),
        ({"role": "user", "content": "x", "name": ""}, {"role": "user", "content": "x"}),
    ],
)
def test_messages_have_one_form(given: dict[str, object], canonical: dict[str, object]) -> None:
    assert canonical_message(given) == canonical


def test_what_no_database_stores_is_replaced_everywhere() -> None:
    value = {"a\ud800": ["x\x00y", {"b": "\udfff"}], "n": 1, "fine": "\U0001f600"}

    assert clean(value) == {"a\ufffd": ["x\ufffdy", {"b": "\ufffd"}], "n": 1, "fine": "\U0001f600"}


def test_the_chain_tells_conversations_apart() -> None:
    one = chain([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    other = chain([{"role": "user", "content": "ab"}, {"role": "assistant", "content": ""}])

    assert one[0] != other[0]
    assert one[1] != other[1]
    assert one[1] == extend_chain(one[0], {"role": "assistant", "content": "b"})
    assert {len(value) for value in one} == {64}


def test_a_trimmed_reply_counts_as_the_same() -> None:
    assert same_message({"role": "assistant", "content": " b\n"}, {"role": "assistant", "content": "b"})
    assert not same_message({"role": "user", "content": " b"}, {"role": "user", "content": "b"})


def test_arguments_that_nest_deeper_than_is_written_compare_as_their_text() -> None:
    def called(arguments: str) -> dict[str, object]:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return canonical_message({"role": "assistant", "tool_calls": [call]})

    deep = "[" * 300 + "]" * 300
    assert same_message(called(deep), called(deep))
    assert not same_message(called(deep), called(f"{deep} "))
    assert len({*chain([called(deep)]), *chain([called(f"{deep} ")]), *chain([called("[]")])}) == 3


def test_arguments_that_a_client_wrote_anew_are_the_same_call() -> None:
    def called(arguments: str) -> dict[str, object]:
        function = {"name": "f", "arguments": arguments}
        return canonical_message(
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        )

    ours = called('{"a":1,"b":[2]}')
    assert same_message(ours, called('{"b": [2], "a": 1}'))
    assert chain([ours]) == chain([called('{"a": 1, "b": [2]}')])
    assert not same_message(ours, called('{"a":1,"b":[3]}'))
    assert not same_message(called("no json"), called("no  json"))
    assert ours["tool_calls"][0]["function"]["arguments"] == '{"a":1,"b":[2]}'  # stored as it came
