"""A key of some policies at the gateway: the others do not exist for it,
on every process from the next request on."""

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from apps.adapters.models import Policy
from apps.conversations.models import Feedback
from apps.keys.services import set_policies
from apps.memory.models import Preference, PreferenceState
from kernel.tenancy import tenant_scope
from tests.api.checks import refused
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

SAY = [{"role": "user", "content": "hi"}]


@pytest.fixture
def coder(somebody: Somebody) -> Policy:
    with tenant_scope(somebody.tenant.id):
        return Policy.objects.create(name="coder", base_model=somebody.policy.base_model)


def limit(somebody: Somebody, *policies: Policy) -> None:
    set_policies(
        tenant_id=somebody.tenant.id,
        key_id=somebody.key.id,
        policies=[policy.pk for policy in policies] or None,
        actor="user:me",
    )


def chat(http: httpx.Client, somebody: Somebody, model: str, **more: Any) -> httpx.Response:
    body = {"model": model, "messages": SAY, **more}
    return http.post("/v1/chat/completions", json=body, headers=somebody.headers)


def test_only_its_policies_answer_and_are_listed(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, coder: Policy
) -> None:
    assert chat(http, somebody, "default").status_code == 200
    assert chat(http, somebody, "coder").status_code == 200
    limit(somebody, coder)
    assert chat(http, somebody, "coder").status_code == 200
    asked = len(engine.requests)
    for model in ("default", "default@0"):
        refused(chat(http, somebody, model), 404, "model_not_found", "model")
        answer = http.post("/v1/responses", json={"model": model, "input": "hi"}, headers=somebody.headers)
        refused(answer, 404, "model_not_found", "model")
    assert len(engine.requests) == asked
    assert len(somebody.turns()) == 3

    listed = http.get("/v1/models", headers=somebody.headers).json()["data"]
    assert [one["id"] for one in listed] == ["coder"]
    assert http.get("/v1/models/coder", headers=somebody.headers).status_code == 200
    refused(http.get("/v1/models/default", headers=somebody.headers), 404, "model_not_found", "model")

    limit(somebody)
    assert chat(http, somebody, "default").status_code == 200


def test_a_key_without_any_policy_left_answers_nothing(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, coder: Policy
) -> None:
    del engine
    limit(somebody, coder)
    with tenant_scope(somebody.tenant.id):
        coder.delete()
    for model in ("coder", "default"):
        refused(chat(http, somebody, model), 404, "model_not_found", "model")
    assert http.get("/v1/models", headers=somebody.headers).json()["data"] == []


def test_feedback_is_about_turns_of_its_policies(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, coder: Policy
) -> None:
    del engine
    turns = {model: chat(http, somebody, model).headers["X-Turn-Id"] for model in ("default", "coder")}
    limit(somebody, coder)

    def thumb(model: str) -> httpx.Response:
        said = {"turn_id": turns[model], "score": 1}
        return http.post("/v1/feedback", json=said, headers=somebody.headers)

    assert thumb("default").status_code == 404
    assert thumb("coder").status_code == 200
    with tenant_scope(somebody.tenant.id):
        assert [str(one.turn_id) for one in Feedback.objects.all()] == [turns["coder"]]


def test_memory_of_other_policies_is_out_of_reach(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine, coder: Policy
) -> None:
    del engine

    def call(method: str, path: str = "", **body: Any) -> httpx.Response:
        return http.request(method, f"/v1/memory{path}", json=body or None, headers=somebody.headers)

    made = {
        model: call("POST", model=model, text="Answer in one sentence.").json()["id"]
        for model in ("default", "coder")
    }
    limit(somebody, coder)
    refused(call("GET", "?model=default"), 404, "model_not_found", "model")
    refused(call("POST", model="default", text="Be brief."), 404, "model_not_found", "model")
    for method, body in (("GET", {}), ("PATCH", {"pinned": True}), ("DELETE", {})):
        assert call(method, f"/{made['default']}", **body).status_code == 404, method
        assert call(method, f"/{uuid.uuid4()}", **body).status_code == 404, method
    with tenant_scope(somebody.tenant.id):
        kept = Preference.objects.get(pk=made["default"])
        assert (kept.state, kept.pinned) == (PreferenceState.ACTIVE, False)
    assert [one["id"] for one in call("GET", "?model=coder").json()["data"]] == [made["coder"]]
    assert call("PATCH", f"/{made['coder']}", pinned=True).json()["pinned"] is True
    assert call("DELETE", f"/{made['coder']}").status_code == 200


def test_a_limit_holds_on_every_process_at_once(
    somebody: Somebody,
    engine: FakeEngine,
    coder: Policy,
    gateway: GatewayProcess,
    start_gateway: Callable[..., GatewayProcess],
) -> None:
    del engine
    other = start_gateway()
    with (
        httpx.Client(base_url=gateway.url, trust_env=False) as one,
        httpx.Client(base_url=other.url, trust_env=False) as two,
    ):
        both = (one, two)
        assert [chat(http, somebody, "default").status_code for http in both] == [200, 200]
        for _ in range(3):
            limit(somebody, coder)
            assert [chat(http, somebody, "default").status_code for http in both] == [404, 404]
            limit(somebody, somebody.policy)
            assert [chat(http, somebody, "default").status_code for http in both] == [200, 200]
