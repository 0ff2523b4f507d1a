"""Many requests at once: what they hold of the database, and where it ends."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg

from tests.api.checks import HI, refused, states
from tests.api.conftest import Chat
from tests.api.gateway_process import CONCURRENCY, DATABASE_POOL, GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody


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
