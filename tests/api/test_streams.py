"""Streams that are read slowly, and several gateways at once."""

import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from tests.api.checks import states, wait_for
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}


def test_a_client_that_does_not_read_stops_the_engine_from_being_read(
    gateway: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine, http: httpx.Client
) -> None:
    engine.say(*("x" * 200_000 for _ in range(60)))
    place = urlsplit(gateway.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((place.hostname, place.port))
        body = orjson.dumps({**HI, "stream": True})
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: "
            + somebody.headers["Authorization"].encode()
            + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        assert connection.recv(12) == b"HTTP/1.1 200"
        seen = -1
        while seen != engine.requests[0].sent:  # until it stands still
            seen = engine.requests[0].sent
            time.sleep(1.0)

        # 12 MB are on their way to a client that takes none of them: most are still with the engine
        assert seen < 60
        assert not engine.requests[0].finished
    wait_for(lambda: states(somebody) == ["aborted"])
    wait_for(lambda: http.get("/healthz").json()["running"] == 0)


def test_two_gateways_answer_one_conversation_in_turns(
    start_gateway: Callable[..., GatewayProcess],
    gateway: GatewayProcess,
    somebody: Somebody,
    engine: FakeEngine,
) -> None:
    second = start_gateway()
    urls = (gateway.url, second.url)

    def talk(number: int) -> list[int]:
        said = [{"role": "user", "content": f"conversation {number}"}]
        answered = []
        with httpx.Client(trust_env=False, timeout=60) as client:
            for turn in range(4):
                response = client.post(
                    f"{urls[(number + turn) % 2]}/v1/chat/completions",
                    json={"model": "default", "messages": said, "stream": bool(turn % 2)},
                    headers=somebody.headers,
                )
                answered.append(response.status_code)
                text = (
                    text_of(frames(response.text)[:-1])
                    if turn % 2
                    else response.json()["choices"][0]["message"]["content"]
                )
                said += [{"role": "assistant", "content": text}, {"role": "user", "content": f"more {turn}"}]
        return answered

    with ThreadPoolExecutor(8) as threads:
        answered = list(threads.map(talk, range(8)))
    second.stop()

    assert answered == [[200] * 4] * 8
    turns = somebody.turns()
    assert len(turns) == 32
    assert len({turn.session_id for turn in turns}) == 8
    assert sum(turn.parent_id is None for turn in turns) == 8
    assert all(turn.prompt_source == "extended" for turn in turns if turn.parent_id is not None)
    assert sum(turn.next_turn_id is not None for turn in turns) == 24


@pytest.mark.parametrize("stream", [False, True])
def test_curl(gateway: GatewayProcess, somebody: Somebody, engine: FakeEngine, *, stream: bool) -> None:
    said = subprocess.run(
        [
            *("curl", "-sSN", "--noproxy", "*", f"{gateway.url}/v1/chat/completions"),
            *("-H", f"Authorization: Bearer {somebody.secret}", "-H", "Content-Type: application/json"),
            *("-d", orjson.dumps({**HI, "stream": stream}).decode()),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    if stream:
        assert text_of(frames(said)[:-1]) == "One short sentence."
        assert said.endswith("data: [DONE]\n\n")
    else:
        assert orjson.loads(said)["choices"][0]["message"]["content"] == "One short sentence."
