"""Bodies that are too large, no JSON, or no request at all."""

import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.checks import refused
from tests.api.gateway_process import MAX_BODY_BYTES, GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = [{"role": "user", "content": "hi"}]


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
