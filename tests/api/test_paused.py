"""A paused tenant is refused everywhere under /v1, from its next request on; a stream under way finishes."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from apps.accounts.pausing import pause_tenant, resume_tenant
from tests.api.checks import HI, refused, states
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody

ROUTES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/chat/completions", HI),
    ("POST", "/v1/chat/completions", {**HI, "stream": True}),
    ("POST", "/v1/chat/completions", {"model": "default"}),
    ("POST", "/v1/responses", {"model": "default", "input": "hi"}),
    ("POST", "/v1/feedback", {"turn_id": str(uuid.uuid4()), "score": 1}),
    ("GET", "/v1/models", None),
    ("GET", "/v1/models/default", None),
    ("GET", "/v1/memory?model=default", None),
    ("POST", "/v1/memory", {"model": "default", "text": "Be brief."}),
]


def pause(somebody: Somebody) -> None:
    pause_tenant(tenant_id=somebody.tenant.pk, reason="unpaid bills", actor="user:1")


def resume(somebody: Somebody) -> None:
    resume_tenant(tenant_id=somebody.tenant.pk, reason="paid", actor="user:1")


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_says_that_the_tenant_is_paused(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, route: tuple[str, str, Any]
) -> None:
    method, path, body = route
    pause(somebody)
    answer = http.request(method, path, json=body, headers=somebody.headers)
    error = refused(answer, 403, "tenant_paused", None)
    assert (error["message"], error["type"]) == (
        "This tenant is paused: unpaid bills. Ask whoever runs this installation.",
        "permission_error",
    )
    assert (engine.requests, somebody.turns()) == ([], [])
    wrong = {"Authorization": f"Bearer {somebody.secret[:-1]}x"}  # who has no key learns nothing of it
    assert http.request(method, path, json=body, headers=wrong).status_code == 401


def test_it_holds_on_every_process_at_once_and_for_nobody_else(
    somebody: Somebody,
    engine: FakeEngine,
    gateway: GatewayProcess,
    start_gateway: Callable[..., GatewayProcess],
) -> None:
    del engine
    stranger = add_somebody("other")
    other = start_gateway()
    with (
        httpx.Client(base_url=gateway.url, trust_env=False) as one,
        httpx.Client(base_url=other.url, trust_env=False) as two,
    ):

        def ask(who: Somebody) -> list[int]:
            return [
                http.post("/v1/chat/completions", json=HI, headers=who.headers).status_code
                for http in (one, two)
            ]

        for _ in range(3):
            assert ask(somebody) == [200, 200]
            pause(somebody)
            assert ask(somebody) == [403, 403]
            assert ask(stranger) == [200, 200]
            resume(somebody)
    assert states(somebody) == ["complete"] * 6


def test_a_stream_under_way_finishes(http: httpx.Client, somebody: Somebody, engine: FakeEngine) -> None:
    engine.say("one", " two")
    engine.hold = threading.Event()
    asked = {**HI, "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=asked, headers=somebody.headers) as answer:
        lines = answer.iter_lines()
        next(lines)
        pause(somebody)
        engine.hold.set()
        rest = list(lines)
    assert rest[-2:] == ["data: [DONE]", ""]
    assert states(somebody) == ["complete"]
    refused(http.post("/v1/chat/completions", json=HI, headers=somebody.headers), 403, "tenant_paused", None)
