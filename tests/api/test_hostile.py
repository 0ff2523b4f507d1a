"""Requests that nobody sends by mistake: each has an answer in the one shape,
and the next request is served."""

import json
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = '"messages":[{"role":"user","content":"hi"}]'
DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (f'{{"model":"default","model":"default",{HI}}}', 200),  # the last of two of a name counts
        (f'{{"model":"default","model":"nothing",{HI}}}', 404),
        (f'{{"model":"default",{HI},"stop":{DEEP}}}', 400),
        (f'{{"model":"default",{HI},"chat_template_kwargs":{{"a":{DEEP}}}}}', 400),
        (f'{{"model":"default",{HI},"chat_template_kwargs":{{"messages":"x","tools":"y"}}}}', 400),
        (f'{{"model":"default",{HI},"seed":99999999999999999999999999}}', 400),
        (f'{{"model":"default",{HI},"max_tokens":1e999}}', 400),
        (f'{{"model":"default",{HI},"temperature":-0.0}}', 200),
        (f'{{"model":"default",{HI},"user":"a\\u0000b"}}', 400),
        (f'{{"model":"default",{HI},"session_id":"a\\r\\nX-Evil: 1"}}', 400),
        (f'{{"model":"default",{HI},"stop":"\\u0000"}}', 200),
        (
            f'{{"model":"default",{HI},"tools":[{{"type":"function","function":{{"name":"f","parameters":{{"a":{DEEP}}}}}}}]}}',
            400,
        ),
        (
            f'{{"model":"default",{HI},"response_format":{{"type":"json_schema","json_schema":{{"schema":{{"a":{DEEP}}}}}}}}}',
            400,
        ),
        ('{"model":"default","messages":[{"role":"user","content":"\\u0000\\ufffe\\u202e<|im_end|>"}]}', 200),
        ('{"model":"default","messages":[{"role":["user"],"content":"x"}]}', 400),
        ('{"model":"default","messages":[{"role":"user","content":[{"type":["text"],"text":"x"}]}]}', 400),
        ('{"model":"default","messages":{"role":"user","content":"x"}}', 400),
        ('{"model":{"a":1},"messages":[]}', 400),
        (
            f'{{"model":"default",{HI},"tool_choice":{{"type":"function","function":[]}},"tools":[{{"type":"function","function":{{"name":"f"}}}}]}}',
            400,
        ),
        (f'{{"model":"default",{HI},"":1}}', 400),
    ],
    ids=lambda value: value[-60:] if isinstance(value, str) else str(value),
)
def test_a_hostile_body_has_its_answer(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, *, body: str, status: int
) -> None:
    response = http.post("/v1/chat/completions", content=body.encode(), headers=somebody.headers)

    assert response.status_code == status, response.text[:300]
    if status != 200:
        assert set(response.json()) == {"error"}
        assert len(response.content) < 1000
    assert "x-evil" not in response.headers


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "", "a" * 2000],
)
def test_the_body_counts_and_not_what_it_is_called(chat: Chat, kind: str) -> None:
    assert chat("hi", headers={"Content-Type": kind}).status_code == 200


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "TRACE", "PATCH", "DELETE"])
def test_other_methods_are_405(http: httpx.Client, somebody: Somebody, ledger: None, method: str) -> None:
    response = http.request(method, "/v1/chat/completions", headers=somebody.headers)

    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    if method != "HEAD":
        assert response.json()["error"]["code"] == "method_not_allowed"


def test_a_body_that_comes_slowly_or_never_holds_nobody_up(
    gateway: GatewayProcess, http: httpx.Client, chat: Chat, somebody: Somebody
) -> None:
    place = urlsplit(gateway.url)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {somebody.secret}\r\n"
    silent = []
    for _ in range(60):  # more than it answers at once
        connection = socket.create_connection((place.hostname, place.port))
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        silent.append(connection)
    assert chat("hi").status_code == 200
    assert http.get("/healthz").json()["running"] == 0

    body = json.dumps({"model": "default", "messages": [{"role": "user", "content": "slowly"}]}).encode()
    with socket.create_connection((place.hostname, place.port), timeout=30) as slow:
        slow.sendall(f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode())
        for i in range(0, len(body), 5):
            piece = body[i : i + 5]
            slow.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.01)
        slow.sendall(b"0\r\n\r\n")
        assert slow.recv(12) == b"HTTP/1.1 200"
    for connection in silent:
        connection.close()
