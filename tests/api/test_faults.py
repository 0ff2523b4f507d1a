"""Clients that leave, engines that die, databases that fill up."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from apps.keys.services import revoke_key
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.gateway_process import CONCURRENCY, DATABASE_POOL, GatewayProcess
from tests.api.test_errors import refused
from tests.fake_engine import ONE_SHORT_SENTENCE, FakeEngine
from tests.tenants import Somebody

HI = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}


def wait_for(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def states(somebody: Somebody) -> list[str]:
    return [turn.state for turn in somebody.turns()]


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


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [(429, 429, "engine_busy"), (500, 503, "engine_unavailable"), (503, 503, "engine_unavailable")],
)
def test_an_engine_that_refuses_before_the_first_token_gives_its_meaning_as_a_status(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool, answer: int, status: int, code: str
) -> None:
    engine.refuse_next(answer, "secret inner words")

    response = chat("hi", stream=stream)

    refused(response, status, code, None)
    assert response.headers["retry-after"] == "1"
    assert "secret inner words" not in response.text
    (turn,) = somebody.turns()
    assert turn.state == "failed"
    assert turn.error.startswith(f"{code}: ")


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_is_not_there(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    engine.stop()

    refused(chat("hi", stream=stream), 503, "engine_gone", None)
    assert states(somebody) == ["failed"]


@pytest.mark.parametrize("how", ["die_after", "fail_after"])
def test_an_engine_that_dies_in_mid_stream_ends_in_an_error_frame(
    chat: Chat, somebody: Somebody, engine: FakeEngine, how: str
) -> None:
    engine.delay_s = 0.02
    setattr(engine, how, 3)

    response = chat("hi", stream=True)

    assert response.status_code == 200
    *head, last = frames(response.text)
    assert text_of(head) == "One short sentence"
    assert all(event["choices"][0]["finish_reason"] is None for event in head)
    assert set(last) == {"error"}
    assert last["error"]["type"] == "server_error"
    assert "[DONE]" not in response.text
    (turn,) = somebody.turns()
    assert turn.state == "failed"
    assert turn.output_ids == [token.id for token in ONE_SHORT_SENTENCE[:3]]
    assert turn.reply == {"role": "assistant", "content": "One short sentence"}


def test_an_engine_that_dies_in_a_whole_reply(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    engine.die_after = 2

    response = chat("hi")

    assert response.status_code in (502, 503)
    assert states(somebody) == ["failed"]


def test_a_failed_request_sent_again_is_answered(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    engine.refuse_next(503)
    first = chat("hi", headers={"X-Stainless-Retry-Count": "0"})
    second = chat("hi", headers={"X-Stainless-Retry-Count": "1"})

    assert (first.status_code, second.status_code) == (503, 200)
    failed, complete = somebody.turns()
    assert (failed.state, complete.state) == ("failed", "complete")
    assert failed.session_id == complete.session_id


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("header", ["X-Stainless-Retry-Count", "Idempotency-Key"])
def test_a_retry_of_a_lost_reply_is_the_same_turn(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool, header: str
) -> None:
    first = chat("hi", stream=stream, headers={header: "0"})
    engine.say("something", " else")
    again = chat("hi", stream=stream, headers={header: "0" if header == "Idempotency-Key" else "1"})

    assert again.status_code == 200
    assert again.headers["x-idempotent-replay"] == "true"
    for name in ("x-turn-id", "x-session-id", "x-adapter-version", "x-adapter-hash", "content-type"):
        assert again.headers[name] == first.headers[name], name
    if stream:
        assert text_of(frames(again.text)) == "One short sentence."
        assert frames(again.text)[-2:] == frames(first.text)[-2:]
    else:
        same = {**first.json(), "created": 0}
        assert {**again.json(), "created": 0} == same
    assert len(somebody.turns()) == 1
    assert len(engine.requests) == 1


def test_a_retry_of_a_running_request_waits_for_its_reply(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(
            target=lambda count=count: answers.append(
                chat("hi", headers={"X-Stainless-Retry-Count": str(count)})
            )
        )
        for count in (0, 1)
    ]
    threads[0].start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    threads[1].start()
    time.sleep(0.5)
    assert answers == []
    engine.hold.set()
    for thread in threads:
        thread.join()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert {answer.json()["id"] for answer in answers} == {f"chatcmpl-{somebody.turns()[0].id.hex}"}
    assert len(engine.requests) == 1


def test_an_idempotency_key_with_another_body(chat: Chat, somebody: Somebody) -> None:
    chat("hi", headers={"Idempotency-Key": "k"})

    refused(chat("ho", headers={"Idempotency-Key": "k"}), 422, "idempotency_key_reused", "Idempotency-Key")
    assert len(somebody.turns()) == 1


def test_many_streams_hold_no_database_connection(
    http: httpx.Client,
    chat: Chat,
    somebody: Somebody,
    engine: FakeEngine,
    owner_connection: psycopg.Connection,
) -> None:
    engine.hold = threading.Event()
    body = {**HI, "stream": True}
    answers: list[str] = []

    def stream() -> None:
        answers.append(http.post("/v1/chat/completions", json=body, headers=somebody.headers).text)

    threads = [threading.Thread(target=stream) for _ in range(5 * DATABASE_POOL)]
    for thread in threads:
        thread.start()
    engine.wait_for(lambda: sum(request.sent >= 4 for request in engine.requests) == len(threads), 20)

    started = time.monotonic()
    assert http.get("/healthz").json()["running"] == len(threads)
    assert http.get("/v1/models", headers=somebody.headers).status_code == 200
    assert time.monotonic() - started < 1
    assert busy(owner_connection) == 0
    engine.hold.set()
    for thread in threads:
        thread.join()
    assert states(somebody) == ["complete"] * len(threads)
    assert all(answer.endswith("data: [DONE]\n\n") for answer in answers)


def busy(connection: psycopg.Connection) -> int:
    """Return how many sessions are in a transaction now, ours aside."""
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state <> 'idle' AND pid <> pg_backend_pid()"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_connections_stay_within_the_pool(
    start_gateway: Callable[..., GatewayProcess],
    somebody: Somebody,
    engine: FakeEngine,
    owner_connection: psycopg.Connection,
) -> None:
    gateway = start_gateway()  # one whose connections nobody has cut or used before

    def ask(number: int) -> list[int]:
        with httpx.Client(
            base_url=gateway.url, headers=somebody.headers, trust_env=False, timeout=30
        ) as client:
            named = {"Idempotency-Key": str(number)}
            return [
                client.post("/v1/chat/completions", json=HI, headers=named).status_code,
                # what is stored, and what is rarer, is read in threads
                client.post("/v1/chat/completions", json=HI, headers=named).status_code,
                client.get("/v1/memory").status_code,
                client.get("/v1/models").status_code,
            ]

    with ThreadPoolExecutor(10 * DATABASE_POOL) as many:
        assert {status for statuses in many.map(ask, range(200)) for status in statuses} == {200}

    row = owner_connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
        [gateway.application_name],
    ).fetchone()
    gateway.stop()
    assert row is not None
    assert 1 <= row[0] <= DATABASE_POOL


def test_a_database_that_drops_its_connections_fails_no_request(
    chat: Chat,
    somebody: Somebody,
    gateway: GatewayProcess,
    owner_connection: psycopg.Connection,
    engine: FakeEngine,
) -> None:
    chat("hi")
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    running = threading.Thread(target=lambda: answers.append(chat("hi")))
    running.start()
    engine.wait_for(lambda: len(engine.requests) == 2)
    dropped = owner_connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = %s",
        [gateway.application_name],
    ).fetchall()
    assert dropped
    engine.hold.set()
    running.join()
    answers += [chat("hi") for _ in range(8)]

    assert [answer.status_code for answer in answers] == [200] * 9
    assert states(somebody) == ["complete"] * 10


def test_too_many_at_once_is_a_clear_refusal(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    with httpx.Client(
        base_url=http.base_url, trust_env=False, limits=httpx.Limits(max_connections=None)
    ) as many:

        def send() -> None:
            many.post("/v1/chat/completions", json=HI, headers=somebody.headers, timeout=30)

        threads = [threading.Thread(target=send) for _ in range(CONCURRENCY)]
        for thread in threads:
            thread.start()
        engine.wait_for(lambda: len(engine.requests) == CONCURRENCY, 20)

        response = chat("one more")
        refused(response, 429, "too_many_requests", None)
        assert response.headers["retry-after"] == "1"
        engine.hold.set()
        for thread in threads:
            thread.join()
    assert chat("now").status_code == 200


def test_a_key_revoked_on_one_process_is_refused_on_all_at_once(
    start_gateway: Callable[..., GatewayProcess],
    gateway: GatewayProcess,
    chat: Chat,
    somebody: Somebody,
    engine: FakeEngine,
) -> None:
    second = start_gateway()
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    running = threading.Thread(target=lambda: answers.append(chat("hi")))
    running.start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    revoke_key(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:tests")

    def ask(url: str) -> httpx.Response:
        return httpx.post(f"{url}/v1/chat/completions", json=HI, headers=somebody.headers, trust_env=False)

    for url in (gateway.url, second.url):
        refused(ask(url), 401, "invalid_api_key", None)
    engine.hold.set()
    running.join()
    assert answers[0].status_code == 200
    for url in (gateway.url, second.url):
        refused(ask(url), 401, "invalid_api_key", None)
    second.stop()


def test_asked_to_stop_it_finishes_what_runs(
    start_gateway: Callable[..., GatewayProcess], somebody: Somebody, engine: FakeEngine
) -> None:
    leaving = start_gateway()
    engine.hold = threading.Event()
    body: dict[str, Any] = {**HI, "stream": True}
    answers: list[str] = []
    running = threading.Thread(
        target=lambda: answers.append(
            httpx.post(
                f"{leaving.url}/v1/chat/completions",
                json=body,
                headers=somebody.headers,
                trust_env=False,
                timeout=30,
            ).text
        )
    )
    running.start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    leaving.terminate()
    time.sleep(0.5)
    engine.hold.set()
    running.join()

    assert leaving.wait() in (0, -15)
    assert answers[0].endswith("data: [DONE]\n\n")
    assert states(somebody) == ["complete"]
    assert "Traceback" not in leaving.log.read_text()


def test_a_stream_that_outlives_the_grace_period_is_marked(
    start_gateway: Callable[..., GatewayProcess], somebody: Somebody, engine: FakeEngine
) -> None:
    leaving = start_gateway()
    engine.hold = threading.Event()
    seen: list[str] = []

    def read() -> None:
        with (
            httpx.Client(trust_env=False, timeout=30) as client,
            client.stream(
                "POST",
                f"{leaving.url}/v1/chat/completions",
                json={**HI, "stream": True},
                headers=somebody.headers,
            ) as response,
        ):
            try:
                seen.extend(response.iter_text())
            except httpx.TransportError:
                seen.append("cut")

    running = threading.Thread(target=read)
    running.start()
    engine.wait_for(lambda: len(engine.requests) == 1 and engine.requests[0].sent == 4)
    leaving.terminate()
    leaving.wait()
    running.join()

    assert "[DONE]" not in "".join(seen)
    assert states(somebody) == ["aborted"]
    assert engine.requests[0].aborted is not None
