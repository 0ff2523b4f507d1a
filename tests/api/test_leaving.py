"""Clients that leave: the engine stops, and what was written is kept, marked."""

import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.checks import HI, states, wait_for
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.fake_generation import ONE_SHORT_SENTENCE
from tests.tenants import Somebody


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_the_first_token_stops_the_engine(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    engine.delay_s = 30
    with pytest.raises(httpx.ReadTimeout):
        http.post(
            "/v1/chat/completions", json={**HI, "stream": stream}, headers=somebody.headers, timeout=0.5
        )
    left = time.monotonic()

    wait_for(lambda: engine.requests[0].aborted is not None, 2)
    assert engine.requests[0].aborted - left < 1
    wait_for(lambda: states(somebody) == ["aborted"])
    (turn,) = somebody.turns()
    assert (turn.output_ids, turn.reply, turn.usage) == ([], None, {})
    wait_for(lambda: http.get("/healthz").json()["running"] == 0)


def test_a_client_that_leaves_in_the_middle_keeps_its_part_marked(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    body = {**HI, "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=body, headers=somebody.headers) as response:
        seen = ""
        for piece in response.iter_text():
            seen += piece
            if "sentence" in seen:
                break
    left = time.monotonic()

    wait_for(lambda: engine.requests[0].aborted is not None, 2)
    assert engine.requests[0].aborted - left < 1
    wait_for(lambda: states(somebody) == ["aborted"])
    (turn,) = somebody.turns()
    assert turn.output_ids == [token.id for token in ONE_SHORT_SENTENCE[:4]]
    assert turn.reply == {"role": "assistant", "content": "One short sentence."}
    assert turn.finish_reason == ""
    wait_for(lambda: http.get("/healthz").json()["running"] == 0)


def test_a_client_that_stops_reading_and_then_leaves(
    gateway: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine, http: httpx.Client
) -> None:
    engine.say(*("x" * 4000 for _ in range(5000)))
    place = urlsplit(gateway.url)
    connection = socket.create_connection((place.hostname, place.port))
    body = b'{"model":"default","stream":true,"max_tokens":5000,"messages":[{"role":"user","content":"hi"}]}'
    connection.sendall(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: "
        + somebody.headers["Authorization"].encode()
        + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    assert connection.recv(12) == b"HTTP/1.1 200"
    time.sleep(0.3)
    connection.close()

    wait_for(lambda: states(somebody) == ["aborted"])
    wait_for(lambda: http.get("/healthz").json()["running"] == 0)
    wait_for(lambda: engine.requests[0].aborted is not None or engine.requests[0].finished)
