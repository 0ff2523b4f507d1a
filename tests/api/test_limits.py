"""A key over its limit: a clear refusal, and every reply says how much is left."""

import threading

import httpx
import redis

from apps.keys.services import set_limit
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody


def test_requests_of_a_key(chat: Chat, somebody: Somebody, valkey: redis.Redis, engine: FakeEngine) -> None:
    set_limit(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:tests", requests_per_minute=2)

    first, second, third = chat("a"), chat("b", stream=True), chat("c")

    for response, left in ((first, "1"), (second, "0")):
        assert response.status_code == 200
        assert response.headers["ratelimit-limit"] == "2"
        assert response.headers["ratelimit-remaining"] == left
        assert 0 < int(response.headers["ratelimit-reset"]) <= 60
    refused(third, 429, "rate_limit_exceeded", None)
    assert 1 <= int(third.headers["retry-after"]) <= 30
    assert len(engine.requests) == len(somebody.turns()) == 2


def test_tokens_of_a_tenant_count_what_was_used(chat: Chat, somebody: Somebody, valkey: redis.Redis) -> None:
    set_limit(tenant_id=somebody.tenant.id, key_id=None, actor="user:tests", tokens_per_minute=200)

    replies = [chat("hello", max_tokens=30) for _ in range(3)]

    assert [reply.status_code for reply in replies] == [200, 200, 200]
    used = [reply.json()["usage"]["total_tokens"] for reply in replies]
    left = int(replies[2].headers["x-ratelimit-remaining-tokens"])
    # the last one still holds what it may take, the two before only what they took
    taken = 30 + len(replies[2].request.content) // 4
    assert abs(left - (200 - used[0] - used[1] - taken)) <= 5


def test_requests_at_once(
    chat: Chat, somebody: Somebody, valkey: redis.Redis, engine: FakeEngine, gateway: GatewayProcess
) -> None:
    set_limit(tenant_id=somebody.tenant.id, key_id=somebody.key.id, actor="user:tests", concurrent=1)
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    running = threading.Thread(target=lambda: answers.append(chat("a", stream=True)))
    running.start()
    engine.wait_for(lambda: len(engine.requests) == 1)

    refused(chat("b"), 429, "rate_limit_exceeded", None)
    engine.hold.set()
    running.join()
    assert answers[0].status_code == 200
    assert chat("c").status_code == 200
