"""Gateways that are asked to stop, and what holds on all of them at once."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from apps.keys.services import revoke_key
from tests.api.checks import HI, refused, states
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody


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
