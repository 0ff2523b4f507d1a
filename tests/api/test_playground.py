"""The dashboard's playground asks the gateway as everybody does;
what it says is stored, and never trained on."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client
from pytest_django import Settings

from apps.accounts.models import Membership, Role
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.keys.models import ApiKey
from apps.keys.services import revoke_key
from apps.memory.services import add_preference
from embedded.home import free_port
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import tenant_scope
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody

Events = list[tuple[str, Any]]


@pytest.fixture(autouse=True)
def _reached(gateway: GatewayProcess, settings: Settings) -> None:
    settings.GATEWAY_URL = f"{gateway.url}/v1"


def signed_in(somebody: Somebody) -> AsyncClient:
    client = AsyncClient()
    client.force_login(somebody.user)
    return client


async def _asked(client: AsyncClient, said: str = "hi", *, status: int = 200, **fields: Any) -> Events:
    body = {
        "policy": "default",
        "version": "live",
        "session_id": "playground-1",
        "messages": [{"role": "user", "content": said}],
    }
    answer = await client.post(
        "/t/acme/playground/ask", data=json.dumps(body | fields), content_type="application/json"
    )
    assert answer.status_code == status, answer
    if status != 200:
        return []
    assert answer["Content-Type"] == "text/event-stream"
    assert "no-store" in answer["Cache-Control"]
    text = "".join([piece.decode() async for piece in answer.streaming_content])  # type: ignore[attr-defined]
    assert text.endswith("\n\n")
    return [_event(block) for block in text.split("\n\n") if block]


def asked(client: AsyncClient, said: str = "hi", **fields: Any) -> Events:
    """Ask, and return every event; the status that is not 200 is given as `status`."""
    return async_to_sync(_asked)(client, said, **fields)


def _event(block: str) -> tuple[str, Any]:
    lines = dict(line.split(": ", 1) for line in block.split("\n"))
    data = lines["data"]
    return lines.get("event", "message"), data if data == "[DONE]" else json.loads(data)


def text_of(events: Events) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for name, value in events
        if name == "message" and value != "[DONE]"
        for choice in value["choices"]
    )


def test_a_reply_comes_through_the_gateway(somebody: Somebody, engine: FakeEngine) -> None:
    engine.say("Seven", " minutes", ".")
    events = asked(signed_in(somebody), "How long?", temperature=0.25, max_tokens=9)
    (turn,) = somebody.turns()
    assert events[0] == ("turn", {"turn": str(turn.pk), "version": "0"})
    assert text_of(events) == "Seven minutes."
    assert events[-1] == ("message", "[DONE]")
    assert engine.requests[-1].sampling["temperature"] == 0.25
    assert engine.requests[-1].sampling["max_new_tokens"] == 9


def test_what_is_said_there_is_stored_and_teaches_nothing(somebody: Somebody, engine: FakeEngine) -> None:
    client = signed_in(somebody)
    engine.say("Blue", ".")
    first = asked(client, "What colour?")
    said = [
        {"role": "user", "content": "What colour?"},
        {"role": "assistant", "content": text_of(first)},
        {"role": "user", "content": "Shorter, please."},
    ]
    asked(client, messages=said)
    one, two = somebody.turns()
    for turn in (one, two):
        assert (turn.state, turn.kind, turn.side) == (TurnState.COMPLETE, TurnKind.EVALUATION, True)
    assert (two.session_id, two.parent_id, one.next_state) == (one.session_id, one.pk, None)
    with tenant_scope(somebody.tenant.pk):
        session = Session.objects.get()
        assert (session.user_id, session.external_id) == (somebody.user.pk, "playground-1")
        assert not OutboxMessage.objects.filter(task="workers.judging.judge_turn").exists()


def test_the_key_is_the_members_own_short_lived_and_made_once(somebody: Somebody, engine: FakeEngine) -> None:
    client = signed_in(somebody)
    events = [asked(client), asked(client, "again")]
    with tenant_scope(somebody.tenant.pk):
        key = ApiKey.objects.exclude(pk=somebody.key.pk).get()
        assert (key.name, key.user_id, sorted(key.scopes)) == (
            "playground",
            somebody.user.pk,
            ["chat", "evaluate"],
        )
        assert key.expires_at is not None
        assert 3500 < (key.expires_at - key.created_at).total_seconds() <= 3600
        assert AuditEntry.objects.get(target=f"key:{key.public_id}").actor == f"user:{somebody.user.pk}"
    assert {turn.key_id for turn in somebody.turns()} == {key.pk}
    kept = json.dumps(dict(client.session.items()))
    assert "at-" not in json.dumps(events) + kept
    assert key.public_id not in kept
    revoke_key(tenant_id=somebody.tenant.pk, key_id=key.pk, actor="test")
    assert text_of(asked(client, "and now?")) != ""
    with tenant_scope(somebody.tenant.pk):
        assert ApiKey.objects.filter(name="playground").count() == 2


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"version": 7}, 404, "The model `default@7` does not exist."),
        ({"messages": []}, 400, "`messages` must be a list of at least one message."),
        ({"temperature": 9}, 400, "`temperature` must be a number from 0 to 2."),
        (
            {"session_id": "a\nb"},
            400,
            "`session_id` must be a string of 1 to 200 printable ASCII characters.",
        ),
    ],
)
def test_what_the_gateway_refuses_is_said(
    somebody: Somebody, engine: FakeEngine, fields: dict[str, Any], status: int, words: str
) -> None:
    events = asked(signed_in(somebody), **fields)
    assert events == [("refused", {"status": status, "message": words})]
    assert somebody.turns() == []


def test_an_engine_that_is_busy_is_said(somebody: Somebody, engine: FakeEngine) -> None:
    engine.refuse_next(429, "queue is full")
    ((name, said),) = asked(signed_in(somebody))
    assert (name, said["status"]) == ("refused", 429)


def test_a_gateway_that_is_gone_is_said(somebody: Somebody, settings: Settings) -> None:
    settings.GATEWAY_URL = f"http://127.0.0.1:{free_port()}/v1"
    events = asked(signed_in(somebody))
    assert events == [("refused", {"status": 502, "message": "The gateway did not answer. Try again."})]


@pytest.mark.parametrize("fields", [{"version": True}, {"version": -1}, {"version": "12"}, {"version": None}])
def test_a_version_is_live_or_a_number(somebody: Somebody, fields: dict[str, Any]) -> None:
    asked(signed_in(somebody), status=400, **fields)


def test_who_may_not_ask(somebody: Somebody) -> None:
    stranger = add_somebody("globex")
    asked(signed_in(stranger), status=404)
    client = signed_in(somebody)
    for name in ("nowhere", None, 7, ["default"]):
        asked(client, status=404, policy=name)
    with tenant_scope(somebody.tenant.pk):
        Membership.objects.filter(user=somebody.user).update(role=Role.VIEWER)
    asked(client, status=403)
    outside = Client(enforce_csrf_checks=True).post("/t/acme/playground/ask")
    assert outside.status_code == 403
    assert somebody.turns() == stranger.turns() == []


def test_memory_is_told_unless_it_is_left_out(somebody: Somebody, engine: FakeEngine) -> None:
    with tenant_scope(somebody.tenant.pk):
        add_preference(
            policy_id=somebody.policy.pk,
            user_id=somebody.user.pk,
            end_user=None,
            text="Answer in one short sentence.",
            actor="test",
        )
    client = signed_in(somebody)
    asked(client)
    asked(client, session_id="playground-2", memory=False)
    with tenant_scope(somebody.tenant.pk):
        told = Turn.objects.order_by("created_at").values_list("memory", flat=True)
        assert [one is not None for one in told] == [True, False]
