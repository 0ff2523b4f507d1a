"""Models, feedback, health; and no route that gives or changes anything of another tenant."""

import uuid

import httpx
import pytest
from django.urls import get_resolver

from apps.adapters.models import Policy
from apps.conversations.models import Feedback
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody, add_version

ROUTES = {
    "v1/chat/completions",
    "v1/responses",
    "v1/models",
    "v1/models/<str:name>",
    "v1/feedback",
    "v1/memory",  # these two in test_memory.py
    "v1/memory/<str:name>",
    "healthz",
    "metrics",
    "",  # everything else
}


def feedback_rows() -> int:
    with system_scope("look"):
        return Feedback.objects.count()


def test_models_show_the_live_version(http: httpx.Client, somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        Policy.objects.create(name="also", base_model="b")
    version = add_version(somebody.policy, 4)

    listed = http.get("/v1/models", headers=somebody.headers).json()

    assert listed["object"] == "list"
    assert [(one["id"], one["version"], one["version_hash"]) for one in listed["data"]] == [
        ("also", 0, "base"),
        ("default", 4, version.sha256),
    ]
    one = http.get("/v1/models/default", headers=somebody.headers).json()
    assert one == listed["data"][1]


def test_a_tenant_sees_and_names_its_own_policies_only(
    http: httpx.Client, somebody: Somebody, engine: FakeEngine
) -> None:
    with tenant_scope(somebody.tenant.id):
        Policy.objects.create(name="mine", base_model="b")
    stranger = add_somebody("other")
    body = {"model": "mine", "messages": [{"role": "user", "content": "hi"}]}

    listed = http.get("/v1/models", headers=stranger.headers).json()["data"]
    assert [one["id"] for one in listed] == ["default"]
    refused(http.get("/v1/models/mine", headers=stranger.headers), 404, "model_not_found", "model")
    refused(
        http.post("/v1/chat/completions", json=body, headers=stranger.headers),
        404,
        "model_not_found",
        "model",
    )
    assert engine.requests == []
    assert http.post("/v1/chat/completions", json=body, headers=somebody.headers).status_code == 200


@pytest.mark.parametrize("named_by", ["turn", "completion"])
def test_feedback(http: httpx.Client, chat: Chat, somebody: Somebody, named_by: str) -> None:
    reply = chat("hi")
    turn_id = reply.headers["x-turn-id"]
    named = turn_id if named_by == "turn" else reply.json()["id"]
    body = {"turn_id": named, "thumbs": "down", "correction": "Shorter."}

    first = http.post("/v1/feedback", json=body, headers=somebody.headers)
    again = http.post("/v1/feedback", json=body, headers=somebody.headers)

    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert {key: first.json()[key] for key in ("object", "turn_id", "score", "correction")} == {
        "object": "feedback",
        "turn_id": turn_id,
        "score": -1,
        "correction": "Shorter.",
    }
    assert feedback_rows() == 1
    with system_scope("look"):
        tasks = list(OutboxMessage.objects.values_list("task", flat=True))
    assert tasks == ["workers.samples.make_sample"]


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({}, 400, "invalid_value", "turn_id"),
        ({"turn_id": 5}, 400, "invalid_value", "turn_id"),
        ({"turn_id": "nonsense", "score": 1}, 404, "not_found", "turn_id"),
        ({"turn_id": str(uuid.UUID(int=5)), "score": 1}, 404, "not_found", "turn_id"),
        ({"turn_id": str(uuid.UUID(int=5))}, 400, "invalid_input", "score"),
        ({"turn_id": str(uuid.UUID(int=5)), "score": 2}, 400, "invalid_value", "score"),
        ({"turn_id": str(uuid.UUID(int=5)), "thumbs": "sideways"}, 400, "invalid_value", "thumbs"),
        ({"turn_id": str(uuid.UUID(int=5)), "thumbs": "up", "score": 1}, 400, "invalid_value", "thumbs"),
        ({"turn_id": str(uuid.UUID(int=5)), "correction": 5}, 400, "invalid_value", "correction"),
        ({"turn_id": str(uuid.UUID(int=5)), "mood": 5}, 400, "unknown_parameter", "mood"),
    ],
)
def test_feedback_that_makes_no_sense(
    http: httpx.Client, somebody: Somebody, *, body: dict[str, object], status: int, code: str, param: str
) -> None:
    refused(http.post("/v1/feedback", json=body, headers=somebody.headers), status, code, param)
    assert feedback_rows() == 0


@pytest.mark.parametrize("relation", ["colleague", "stranger"])
def test_feedback_on_somebody_elses_turn_is_not_found(
    http: httpx.Client, chat: Chat, somebody: Somebody, relation: str
) -> None:
    turn_id = chat("hi").headers["x-turn-id"]
    other = add_somebody(tenant=somebody.tenant) if relation == "colleague" else add_somebody("other")

    response = http.post("/v1/feedback", json={"turn_id": turn_id, "score": 1}, headers=other.headers)

    refused(response, 404, "not_found", "turn_id")
    assert feedback_rows() == 0


@pytest.mark.parametrize(
    ("route", "name"), [("/v1/chat/completions", "messages"), ("/v1/responses", "input")]
)
def test_another_tenants_session_is_neither_joined_nor_changed(
    http: httpx.Client, chat: Chat, somebody: Somebody, *, route: str, name: str
) -> None:
    session = chat("hi").headers["x-session-id"]
    stranger = add_somebody("other")
    body = {
        "model": "default",
        "session_id": session,
        name: [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "One short sentence."},
            {"role": "user", "content": "more"},
        ],
    }

    assert http.post(route, json=body, headers=stranger.headers).status_code == 200

    (mine,), (theirs,) = somebody.turns(), stranger.turns()
    assert mine.next_state is None
    assert theirs.parent_id is None
    assert theirs.session_id != mine.session_id


def test_every_route_is_one_that_the_tenancy_tests_know() -> None:
    # a new route must be added here and to the tests above
    routes = {str(one.pattern) for one in get_resolver("apps.gateway.urls").url_patterns}
    assert routes == ROUTES


def test_health_asks_nobody(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok", "running": 0}
    assert http.head("/healthz").status_code == 200
