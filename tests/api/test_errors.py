"""Every refusal has OpenAI's shape, its own status, and writes nothing."""

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
import redis

from apps.engines.models import Engine, EngineState
from apps.keys.services import set_limit
from tests.api.conftest import Chat
from tests.api.gateway_process import CONTEXT_LENGTH, MAX_BODY_BYTES, GatewayProcess
from tests.api.loaded import make_loaded
from tests.chat_model import WITHOUT_TOOLS, build_chat_model
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody, add_version

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HI = [{"role": "user", "content": "hi"}]


def refused(response: httpx.Response, status: int, code: str, param: str | None) -> dict[str, Any]:
    """Check the shape of an error and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (code, param)
    assert error["message"]
    return error


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
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"model": NaN}',
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"a": "\\ud800" ',
        # beside half a surrogate pair a second reader takes over: it must refuse the same numbers
        b'{"a": "\\ud800", "b": 1e400}',
        b'{"a": "\\ud800", "b": 1%s}' % (b"0" * 4000),
    ],
    ids=lambda body: repr(body)[:40],
)
def test_a_body_that_is_no_json_object(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, body: bytes
) -> None:
    response = http.post("/v1/chat/completions", content=body, headers=somebody.headers)

    refused(response, 400, "invalid_json", None)
    assert somebody.turns() == []


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


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, *, chunked: bool
) -> None:
    body = b'{"model":"default","messages":[{"role":"user","content":"' + b"x" * MAX_BODY_BYTES + b'"}]}'
    content = iter([body[i : i + 10_000] for i in range(0, len(body), 10_000)]) if chunked else body

    response = http.post("/v1/chat/completions", content=content, headers=somebody.headers)

    error = refused(response, 413, "request_too_large", None)
    assert str(MAX_BODY_BYTES) in error["message"]
    assert somebody.turns() == []
    assert http.get("/healthz").status_code == 200


def test_a_body_far_over_the_limit_is_still_answered(http: httpx.Client, somebody: Somebody) -> None:
    response = http.post(
        "/v1/chat/completions", content=b"x" * (60 * MAX_BODY_BYTES), headers=somebody.headers
    )

    refused(response, 413, "request_too_large", None)


def test_a_body_at_the_limit_is_taken(http: httpx.Client, somebody: Somebody, engine: FakeEngine) -> None:
    body = json.dumps({"model": "default", "messages": HI}).encode().ljust(MAX_BODY_BYTES)

    assert http.post("/v1/chat/completions", content=body, headers=somebody.headers).status_code == 200


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer sk-openai", "Basic eDp5", "Bearer at-AAAAAAAAAAAAAAAA-BBBBBBBBBBBBBBBBBBBB"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/default"),
        ("POST", "/v1/feedback"),
    ],
)
def test_no_route_answers_without_a_key(
    http: httpx.Client, engine: FakeEngine, *, header: str | None, method: str, path: str
) -> None:
    headers = {} if header is None else {"Authorization": header}

    response = http.request(method, path, headers=headers, content=b"{" if method == "POST" else None)

    error = refused(response, 401, "invalid_api_key", None)
    assert error["type"] == "authentication_error"
    assert response.headers["www-authenticate"] == "Bearer"
    assert engine.requests == []


def test_a_key_leaves_no_trace_wherever_it_is_put(
    chat: Chat, http: httpx.Client, somebody: Somebody, gateway: GatewayProcess
) -> None:
    secret = somebody.secret.split("-", 2)[2]
    answers = [
        http.post(f"/v1/chat/completions?api_key={somebody.secret}", json={"model": "default"}),
        http.get("/v1/models", params={"key": somebody.secret, "authorization": f"Bearer {somebody.secret}"}),
        http.get("/v1/models", headers={"X-Api-Key": somebody.secret}),
        http.get("/v1/models", headers={"Authorization": f"Bearer {somebody.secret[:-3]}xyz"}),
    ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert chat("hi", headers={"Authorization": f"bEARER {somebody.secret}"}).status_code == 200

    shown = "".join(answer.text + str(answer.headers) for answer in answers) + gateway.log.read_text()
    assert "POST /v1/chat/completions" in shown  # the log is there and was written
    assert secret not in shown
    assert secret[:-3] not in shown


def test_no_key_is_in_any_log_or_row_or_cache(
    chat: Chat,
    http: httpx.Client,
    somebody: Somebody,
    *,
    gateway: GatewayProcess,
    owner_connection: psycopg.Connection,
    valkey: redis.Redis,
) -> None:
    own, near = somebody.secret, f"{somebody.secret[:-3]}xyz"
    foreign = "sk-proj-W7mQp2Zr9Lx4Vn8Kc1Ty6Hb3Jd5Fg0As"
    body = {"model": "default", "messages": HI}
    set_limit(
        tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:tests", requests_per_minute=100
    )
    for key in (near, foreign):
        for name in ("Authorization", "AUTHORIZATION", "authorization"):
            for scheme in ("Bearer", "bEARER"):
                wrong = http.post("/v1/chat/completions", json=body, headers={name: f"{scheme} {key}"})
                refused(wrong, 401, "invalid_api_key", None)
                assert key not in wrong.text
    for key in (own, near, foreign):
        refused(http.get("/v1/models", params={"api_key": key}), 401, "invalid_api_key", None)
        http.post(f"/v1/feedback?key={key}", content=b"{", headers={"X-Api-Key": key, "Api-Key": key})
        http.get("/v1/models", headers={"Authorization": key})
        http.get(f"/nowhere?token={key}")
    turn = chat("hi", headers={"Authorization": f"bEARER {own}", "X-Session-Id": "s-1"}).headers["x-turn-id"]
    chat("hi", stream=True, n=2)
    http.post("/v1/feedback", json={"turn_id": turn, "thumbs": "up"}, headers=somebody.headers)

    tables = [
        name
        for (name,) in owner_connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ]
    rows = {
        table: str(owner_connection.execute(f'SELECT t::text FROM "{table}" t').fetchall())  # noqa: S608
        for table in tables
    }
    cached = str([(name, valkey.dump(name)) for name in valkey.scan_iter()])
    log = gateway.log.read_text()
    assert "s-1" in rows["conversations_session"]
    assert somebody.key.public_id in rows["keys_apikey"]
    assert somebody.key.id.hex in cached
    assert "POST /v1/chat/completions" in log
    for secret in (own.split("-", 2)[2], near.split("-", 2)[2], foreign.split("-", 2)[2]):
        assert [table for table, text in rows.items() if secret in text] == []
        assert secret not in cached
        assert secret not in log


def test_a_key_without_the_scope(http: httpx.Client, engine: FakeEngine, ledger: None) -> None:
    reader = add_somebody(scopes=("read",))
    body = {"model": "default", "messages": HI}

    error = refused(
        http.post("/v1/chat/completions", json=body, headers=reader.headers), 403, "insufficient_scope", None
    )
    assert error["type"] == "permission_error"
    assert reader.turns() == []


def test_a_version_is_asked_for_only_with_the_evaluate_scope(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    first, second = add_version(somebody.policy, 1), add_version(somebody.policy, 2)
    make_loaded(first, engine)
    make_loaded(second, engine)
    judge = add_somebody(tenant=somebody.tenant, scopes=("chat", "evaluate"))

    refused(chat(model="default@1"), 403, "insufficient_scope", None)
    assert somebody.turns() == []
    answers = [
        http.post("/v1/chat/completions", json={"model": name, "messages": HI}, headers=judge.headers)
        for name in ("default@1", "default@0", "default@7", "default")
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 404, 200]
    assert [answer.headers.get("x-adapter-version") for answer in answers] == ["1", "0", None, "2"]
    assert [request.adapter for request in engine.requests] == [first.served_name, None, second.served_name]
    assert [turn.kind for turn in somebody.turns()] == ["evaluation", "evaluation", "live"]


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


def test_a_seed_is_refused_where_the_engines_would_ignore_it(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    refused(chat(seed=5), 400, "unsupported_parameter", "seed")
    assert somebody.turns() == []
    assert chat(seed=None).status_code == 200
    assert "sampling_seed" not in engine.requests[0].sampling


def test_where_the_engines_draw_by_seed_every_request_has_one(
    start_gateway: Callable[..., GatewayProcess], somebody: Somebody, engine: FakeEngine
) -> None:
    seeded = start_gateway(ENGINE_HONOURS_SEED="true")

    for fields in ({"seed": 5}, {}, {}):
        body = {"model": "default", "messages": HI, **fields}
        response = httpx.post(
            f"{seeded.url}/v1/chat/completions", json=body, headers=somebody.headers, trust_env=False
        )
        assert response.status_code == 200
    seeded.stop()

    first, *others = (request.sampling["sampling_seed"] for request in engine.requests)
    assert first == 5
    assert len({first, *others}) == 3  # one that all shared would make equal prompts equal replies
    assert [turn.sampling.get("seed") for turn in somebody.turns()] == [5, None, None]


def test_names_that_nobody_knows_are_shown_in_part_only(chat: Chat, engine: FakeEngine) -> None:
    name = "é\n" + "x" * 5000

    top = refused(chat(**{name: 1}), 400, "unknown_parameter", "?\n" + "x" * 98)
    inner = chat(stream=True, stream_options={name: 1})
    refused(inner, 400, "unknown_parameter", "stream_options.?\n" + "x" * 98)
    assert len(inner.content) < 500
    assert len(top["message"]) < 200


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["no request", "no header", "NUL in a header", "negative length", "no chunk"],
)
def test_bytes_that_are_no_request_are_refused_in_the_same_shape(
    gateway: GatewayProcess, sent: bytes
) -> None:
    place = urlsplit(gateway.url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
        connection.sendall(sent)
        said = b""
        while piece := connection.recv(4096):
            said += piece

    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body) == {
        "error": {
            "message": "Invalid HTTP request received.",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_http",
        }
    }


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
