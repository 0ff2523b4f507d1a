"""Every refusal has OpenAI's shape, its own status, and writes nothing."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from apps.engines.models import Engine, EngineState
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.gateway_process import CONTEXT_LENGTH, GatewayProcess
from tests.chat_model import WITHOUT_TOOLS, build_chat_model
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"n": 2}, "unsupported_value", "n"),
        ({"logit_bias": {"5": 1}}, "unsupported_parameter", "logit_bias"),
        ({"metadata": {}}, "unsupported_parameter", "metadata"),
        ({"temprature": 1}, "unknown_parameter", "temprature"),
        ({"temperature": 2.5}, "invalid_value", "temperature"),
        ({"temperature": "hot"}, "invalid_value", "temperature"),
        ({"temperature": True}, "invalid_value", "temperature"),
        ({"top_p": 0}, "invalid_value", "top_p"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": 1.5}, "invalid_value", "max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "invalid_value", "max_completion_tokens"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "invalid_value", "stop"),
        ({"stop": [""]}, "invalid_value", "stop"),
        ({"stream": "yes"}, "invalid_value", "stream"),
        ({"stream_options": {"include_usage": True}}, "invalid_value", "stream_options"),
        ({"stream": True, "stream_options": {"x": 1}}, "unknown_parameter", "stream_options.x"),
        ({"tool_choice": "auto"}, "invalid_value", "tool_choice"),
        ({"tools": [{"type": "web_search"}]}, "unsupported_value", "tools[0].type"),
        ({"chat_template_kwargs": {"a": [1]}}, "invalid_value", "chat_template_kwargs"),
        ({"user": "x" * 201}, "invalid_value", "user"),
        ({"session_id": "a\nb"}, "invalid_value", "session_id"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": None}, "invalid_value", "messages"),
        ({"messages": ["hi"]}, "invalid_value", "messages[0]"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "invalid_value", "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": None}]}, "invalid_value", "messages[0].content"),
        ({"messages": [{**HI[0], "mood": "x"}]}, "unknown_parameter", "messages[0].mood"),
        (
            {"messages": [{"role": "tool", "content": "4"}]},
            "invalid_value",
            "messages[0].tool_call_id",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "what is this?"},
                            {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}},
                        ],
                    }
                ]
            },
            "unsupported_value",
            "messages[0].content[1]",
        ),
        ({"model": None}, "missing_required_parameter", "model"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
)
def test_what_is_wrong_or_not_served_is_named(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, fields: dict[str, Any], code: str, param: str
) -> None:
    error = refused(chat(**fields), 400, code, param)

    assert error["type"] == "invalid_request_error"
    assert param.rpartition(".")[2].partition("[")[0] in error["message"] or "type" in error["message"]
    assert somebody.turns() == []
    assert engine.requests == []


@pytest.mark.parametrize("name", ["temperature", "n", "stop", "tools", "user", "logit_bias", "stream"])
def test_null_asks_for_nothing(chat: Chat, name: str) -> None:
    assert chat(**{name: None}).status_code == 200


@pytest.mark.parametrize(
    "model",
    ["gpt-4", "Default", "default@", "default@x", "default@-1", "", "../x", "no\ud800thing", "x" * 300],
)
def test_an_unknown_model(chat: Chat, somebody: Somebody, model: str, http: httpx.Client) -> None:
    content = json.dumps({"model": model, "messages": HI})
    response = http.post("/v1/chat/completions", content=content, headers=somebody.headers)

    if model:
        error = refused(response, 404, "model_not_found", "model")
        assert error["type"] == "not_found_error"
        assert error["message"].endswith("` does not exist. `GET /v1/models` lists those that do.")
    else:
        refused(response, 400, "missing_required_parameter", "model")
    assert somebody.turns() == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_past_the_context(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    error = refused(chat("x" * CONTEXT_LENGTH, stream=stream), 400, "context_length_exceeded", "messages")

    assert str(CONTEXT_LENGTH) in error["message"]
    assert somebody.turns() == []
    assert engine.requests == []


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        ("/v1/chat/completions", "GET", 405, "method_not_allowed"),
        ("/v1/models", "POST", 405, "method_not_allowed"),
        ("/v1/nothing", "POST", 404, "unknown_url"),
        ("/", "GET", 404, "unknown_url"),
        ("/v1/chat/completions/", "POST", 404, "unknown_url"),
        ("/console/", "GET", 404, "unknown_url"),
    ],
)
def test_what_is_not_there(http: httpx.Client, path: str, method: str, status: int, code: str) -> None:
    response = http.request(method, path)

    refused(response, status, code, None)
    if status == 405:
        assert response.headers["allow"] in ("POST", "GET, HEAD")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Session-Id", "x" * 201),
        ("Idempotency-Key", "x" * 256),
        ("X-Turn-Type", "odd"),
        ("X-Session-Id", "\u00e9"),
    ],
)
def test_a_header_that_means_nothing_is_named(
    http: httpx.Client, chat: Chat, somebody: Somebody, name: str, value: str
) -> None:
    response = http.post(
        "/v1/chat/completions",
        json={"model": "default", "messages": HI},
        headers=[
            (b"Authorization", somebody.headers["Authorization"].encode()),
            (name.encode(), value.encode("latin-1")),
        ],
    )

    refused(response, 400, "invalid_value", name)
    assert somebody.turns() == []


def test_two_names_for_one_session(chat: Chat, somebody: Somebody) -> None:
    response = chat(session_id="a", headers={"X-Session-Id": "b"})

    refused(response, 400, "invalid_input", "session_id")
    assert somebody.turns() == []


def test_no_engine_is_ready(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    Engine.objects.update(state=EngineState.LOST)

    response = chat("hi")

    error = refused(response, 503, "engine_unavailable", None)
    assert error["type"] == "server_error"
    assert int(response.headers["retry-after"]) > 0
    assert somebody.turns() == []


def test_names_that_nobody_knows_are_shown_in_part_only(chat: Chat, engine: FakeEngine) -> None:
    name = "é\n" + "x" * 5000

    top = refused(chat(**{name: 1}), 400, "unknown_parameter", "?\n" + "x" * 98)
    inner = chat(stream=True, stream_options={name: 1})
    refused(inner, 400, "unknown_parameter", "stream_options.?\n" + "x" * 98)
    assert len(inner.content) < 500
    assert len(top["message"]) < 200


def test_tools_where_the_template_knows_none(
    start_gateway: Callable[..., GatewayProcess],
    tmp_path_factory: pytest.TempPathFactory,
    somebody: Somebody,
    engine: FakeEngine,
) -> None:
    model = build_chat_model(tmp_path_factory.mktemp("plain") / "model", template=WITHOUT_TOOLS)
    plain = start_gateway(model=model)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    def send(**body: Any) -> httpx.Response:
        return httpx.post(
            f"{plain.url}/v1/chat/completions",
            json={"model": "default", "messages": HI, **body},
            headers=somebody.headers,
            trust_env=False,
        )

    refused(send(tools=[TOOL]), 400, "unsupported_parameter", "tools")
    refused(
        send(messages=[*HI, {"role": "assistant", "tool_calls": [call]}]),
        400,
        "unsupported_value",
        "messages[1]",
    )
    refused(
        send(messages=[*HI, {"role": "tool", "content": "4", "tool_call_id": "c1"}]),
        400,
        "unsupported_value",
        "messages[1]",
    )
    assert send(tools=[TOOL], tool_choice="none").status_code == 200
    assert send().status_code == 200
    plain.stop()
