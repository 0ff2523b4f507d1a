"""LangChain's client, with only the address and the key changed."""

from typing import Any

import langchain_openai
import pytest

from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


@pytest.fixture(params=[False, True], ids=["chat", "responses"])
def model(
    request: pytest.FixtureRequest, gateway: GatewayProcess, somebody: Somebody, engine: FakeEngine
) -> Any:
    del engine
    return langchain_openai.ChatOpenAI(
        model="default",
        base_url=f"{gateway.url}/v1",
        api_key=somebody.secret,
        use_responses_api=request.param,
        max_retries=0,
    )


def test_it_answers_and_streams(model: Any, somebody: Somebody) -> None:
    assert model.invoke("hi").text == "One short sentence."
    assert "".join(chunk.text for chunk in model.stream("hi")) == "One short sentence."
    assert [turn.state for turn in somebody.turns()] == ["complete", "complete"]


def test_it_calls_tools_and_sends_their_results(model: Any, somebody: Somebody, engine: FakeEngine) -> None:
    engine.say(CALL)
    with_tools = model.bind_tools([ADD])
    asked: list[Any] = [("user", "1 + 2?")]
    reply = with_tools.invoke(asked)

    (call,) = reply.tool_calls
    assert (call["name"], call["args"]) == ("add", {"a": 1, "b": 2})

    engine.say("3")
    again = with_tools.invoke([*asked, reply, {"role": "tool", "content": "3", "tool_call_id": call["id"]}])

    assert again.text == "3"
    first, second = somebody.turns()
    assert (second.parent_id, second.prompt_source) == (first.id, "extended")
