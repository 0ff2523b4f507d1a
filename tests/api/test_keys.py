"""Keys: refused where they may not, and never to be read again."""

import httpx
import psycopg
import pytest
import redis

from apps.accounts.models import Role
from apps.accounts.services import set_role
from apps.keys.services import set_limit
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.api.loaded import make_loaded
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody, add_version

HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer sk-openai", "Basic eDp5", "Bearer at-AAAAAAAAAAAAAAAA-BBBBBBBBBBBBBBBBBBBB"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/default"),
        ("POST", "/v1/feedback"),
    ],
)
def test_no_route_answers_without_a_key(
    http: httpx.Client, engine: FakeEngine, *, header: str | None, method: str, path: str
) -> None:
    headers = {} if header is None else {"Authorization": header}

    response = http.request(method, path, headers=headers, content=b"{" if method == "POST" else None)

    error = refused(response, 401, "invalid_api_key", None)
    assert error["type"] == "authentication_error"
    assert error["message"].endswith(" Keys are made on the dashboard's page Keys.")
    assert response.headers["www-authenticate"] == "Bearer"
    assert engine.requests == []


def test_a_key_leaves_no_trace_wherever_it_is_put(
    chat: Chat, http: httpx.Client, somebody: Somebody, gateway: GatewayProcess
) -> None:
    secret = somebody.secret.split("-", 2)[2]
    answers = [
        http.post(f"/v1/chat/completions?api_key={somebody.secret}", json={"model": "default"}),
        http.get("/v1/models", params={"key": somebody.secret, "authorization": f"Bearer {somebody.secret}"}),
        http.get("/v1/models", headers={"X-Api-Key": somebody.secret}),
        http.get("/v1/models", headers={"Authorization": f"Bearer {somebody.secret[:-3]}xyz"}),
    ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert chat("hi", headers={"Authorization": f"bEARER {somebody.secret}"}).status_code == 200

    shown = "".join(answer.text + str(answer.headers) for answer in answers) + gateway.log.read_text()
    assert "POST /v1/chat/completions" in shown  # the log is there and was written
    assert secret not in shown
    assert secret[:-3] not in shown


def test_no_key_is_in_any_log_or_row_or_cache(
    chat: Chat,
    http: httpx.Client,
    somebody: Somebody,
    *,
    gateway: GatewayProcess,
    owner_connection: psycopg.Connection,
    valkey: redis.Redis,
) -> None:
    own, near = somebody.secret, f"{somebody.secret[:-3]}xyz"
    foreign = "sk-proj-W7mQp2Zr9Lx4Vn8Kc1Ty6Hb3Jd5Fg0As"
    body = {"model": "default", "messages": HI}
    set_limit(
        tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:tests", requests_per_minute=100
    )
    for key in (near, foreign):
        for name in ("Authorization", "AUTHORIZATION", "authorization"):
            for scheme in ("Bearer", "bEARER"):
                wrong = http.post("/v1/chat/completions", json=body, headers={name: f"{scheme} {key}"})
                refused(wrong, 401, "invalid_api_key", None)
                assert key not in wrong.text
    for key in (own, near, foreign):
        refused(http.get("/v1/models", params={"api_key": key}), 401, "invalid_api_key", None)
        http.post(f"/v1/feedback?key={key}", content=b"{", headers={"X-Api-Key": key, "Api-Key": key})
        http.get("/v1/models", headers={"Authorization": key})
        http.get(f"/nowhere?token={key}")
    turn = chat("hi", headers={"Authorization": f"bEARER {own}", "X-Session-Id": "s-1"}).headers["x-turn-id"]
    chat("hi", stream=True, n=2)
    http.post("/v1/feedback", json={"turn_id": turn, "thumbs": "up"}, headers=somebody.headers)

    tables = [
        name
        for (name,) in owner_connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ]
    rows = {
        table: str(owner_connection.execute(f'SELECT t::text FROM "{table}" t').fetchall())  # noqa: S608
        for table in tables
    }
    cached = str([(name, valkey.dump(name)) for name in valkey.scan_iter()])
    log = gateway.log.read_text()
    assert "s-1" in rows["conversations_session"]
    assert somebody.key.public_id in rows["keys_apikey"]
    assert somebody.key.id.hex in cached
    assert "POST /v1/chat/completions" in log
    for secret in (own.split("-", 2)[2], near.split("-", 2)[2], foreign.split("-", 2)[2]):
        assert [table for table, text in rows.items() if secret in text] == []
        assert secret not in cached
        assert secret not in log


def test_a_key_without_the_scope(http: httpx.Client, engine: FakeEngine, ledger: None) -> None:
    reader = add_somebody(scopes=("read",))
    body = {"model": "default", "messages": HI}

    error = refused(
        http.post("/v1/chat/completions", json=body, headers=reader.headers), 403, "insufficient_scope", None
    )
    assert error["type"] == "permission_error"
    assert reader.turns() == []


def test_whoever_becomes_a_viewer_talks_no_more(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    def become(role: Role) -> None:
        set_role(tenant_id=somebody.tenant.id, user=somebody.user, role=role, actor="user:owner")

    assert chat("hi").status_code == 200
    become(Role.VIEWER)
    error = refused(chat("hi"), 403, "insufficient_scope", None)
    assert (error["type"], error["message"]) == (
        "permission_error",
        (
            "This key lacks the scope `chat`, or its person's role does not give it. "
            "Make a key that has it under Keys, or ask an owner for another role."
        ),
    )
    refused(chat("hi", stream=True), 403, "insufficient_scope", None)
    for method, path in (("GET", "/v1/models"), ("GET", "/v1/models/default"), ("POST", "/v1/feedback")):
        body = {"turn_id": str(somebody.turns()[0].id), "thumbs": "up"} if method == "POST" else None
        answer = http.request(method, path, headers=somebody.headers, json=body)
        refused(answer, 403, "insufficient_scope", None)
    assert (len(somebody.turns()), len(engine.requests)) == (1, 1)
    become(Role.MEMBER)
    assert chat("again").status_code == 200
    assert (len(somebody.turns()), len(engine.requests)) == (2, 2)


def test_a_version_is_asked_for_only_with_the_evaluate_scope(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    first, second = add_version(somebody.policy, 1), add_version(somebody.policy, 2)
    make_loaded(first, engine)
    make_loaded(second, engine)
    judge = add_somebody(tenant=somebody.tenant, scopes=("chat", "evaluate"))

    refused(chat(model="default@1"), 403, "insufficient_scope", None)
    assert somebody.turns() == []
    answers = [
        http.post("/v1/chat/completions", json={"model": name, "messages": HI}, headers=judge.headers)
        for name in ("default@1", "default@0", "default@7", "default")
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 404, 200]
    assert [answer.headers.get("x-adapter-version") for answer in answers] == ["1", "0", None, "2"]
    assert [request.adapter for request in engine.requests] == [first.served_name, None, second.served_name]
    assert [turn.kind for turn in somebody.turns()] == ["evaluation", "evaluation", "live"]
