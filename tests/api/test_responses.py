"""`/v1/responses`: the same turns in the words of OpenAI's newer API."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

SENTENCE = "One short sentence."
ADD: dict[str, Any] = {"type": "function", "name": "add", "parameters": {"type": "object"}}
CALLS = (
    "Let me see.",
    '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    '\n<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>',
)


@pytest.fixture
def client(gateway: GatewayProcess, somebody: Somebody, engine: FakeEngine) -> Iterator[openai.OpenAI]:
    del engine
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=somebody.secret, max_retries=0) as made:
        yield made


def test_a_reply(client: openai.OpenAI, somebody: Somebody, engine: FakeEngine) -> None:
    response = client.responses.create(
        model="default", instructions="Be brief.", input="hi", temperature=0.5, max_output_tokens=20
    )

    assert response.output_text == SENTENCE
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.output_tokens == 5
    (turn,) = somebody.turns()
    assert response.id == f"resp_{turn.id.hex}"
    assert turn.messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert (turn.sampling["temperature"], turn.sampling["max_tokens"]) == (0.5, 20)


def test_a_stream(client: openai.OpenAI, somebody: Somebody) -> None:
    events = list(client.responses.create(model="default", input="hi", stream=True))

    kinds = [event.type for event in events]
    assert kinds[:4] == [
        *("response.created", "response.in_progress", "response.output_item.added"),
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        *("response.output_text.done", "response.content_part.done", "response.output_item.done"),
        "response.completed",
    ]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == SENTENCE
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == SENTENCE
    assert [turn.state for turn in somebody.turns()] == ["complete"]


@pytest.mark.parametrize("stream", [False, True])
def test_tools_and_their_results_continue_the_turn(
    client: openai.OpenAI, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    engine.say(*CALLS)
    said: list[Any] = [{"role": "user", "content": "add"}]
    if stream:
        with client.responses.stream(model="default", input=said, tools=[ADD]) as events:
            response: Any = events.get_final_response()
    else:
        response = client.responses.create(model="default", input=said, tools=[ADD])

    message, *calls = response.output
    assert message.content[0].text == "Let me see."
    assert [(call.name, call.arguments) for call in calls] == [("add", '{"a":1}'), ("add", '{"a":2}')]

    engine.say("3")
    said += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    for item in said[1:]:
        for part in item.get("content", []):
            part.pop("parsed", None)
    said += [{"type": "function_call_output", "call_id": call.call_id, "output": "1"} for call in calls]
    second = client.responses.create(model="default", input=said, tools=[ADD])

    assert second.output_text == "3"
    first, continued = somebody.turns()
    assert continued.parent_id == first.id
    assert continued.prompt_source == "extended"
    assert [message["role"] for message in first.next_state] == ["tool", "tool"]


def test_a_reply_that_was_cut(client: openai.OpenAI) -> None:
    response = client.responses.create(model="default", input="hi", max_output_tokens=2)

    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


def test_a_form(client: openai.OpenAI, engine: FakeEngine) -> None:
    client.responses.create(
        model="default",
        input="hi",
        text={"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
    )

    assert engine.requests[0].sampling["json_schema"] == '{"type":"object"}'


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "reasoning"}]}, "input[0]"),
        ({"input": [{"role": "boss", "content": "x"}]}, "input[0].role"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"store": False}, "store"),
        ({"include": ["x"]}, "include"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_is_wrong_is_named_in_its_own_words(
    chat: Chat, http: httpx.Client, somebody: Somebody, fields: dict[str, Any], param: str
) -> None:
    body = {"model": "default", "input": "hi", **fields}

    response = http.post("/v1/responses", json=body, headers=somebody.headers)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
    assert somebody.turns() == []


def test_an_engine_that_fails_in_mid_stream(
    client: openai.OpenAI, engine: FakeEngine, somebody: Somebody
) -> None:
    engine.delay_s = 0.02
    engine.fail_after = 3

    with pytest.raises(openai.APIError):
        list(client.responses.create(model="default", input="hi", stream=True))
    assert [turn.state for turn in somebody.turns()] == ["failed"]


def test_a_retry_is_the_same_reply(http: httpx.Client, chat: Chat, somebody: Somebody) -> None:
    def send() -> httpx.Response:
        body = {"model": "default", "input": "hi"}
        return http.post("/v1/responses", json=body, headers={**somebody.headers, "Idempotency-Key": "k"})

    first, again = send(), send()

    assert again.headers["x-idempotent-replay"] == "true"
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["output"] == first.json()["output"]
