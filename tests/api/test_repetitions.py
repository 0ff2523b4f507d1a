"""The same request again: one turn, one reply."""

import threading
import time

import httpx
import pytest
import redis
from django.db import transaction

from apps.conversations.models import Turn
from apps.keys.models import ApiKey, KeyScope
from apps.keys.services import create_key, set_limit
from kernel.tenancy import tenant_scope
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.gateway_process import DATABASE_POOL
from tests.fake_engine import FakeEngine
from tests.locks import wait_for_a_lock
from tests.tenants import Somebody


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


def test_waiting_for_a_twin_is_one_request(
    chat: Chat, somebody: Somebody, valkey: redis.Redis, engine: FakeEngine
) -> None:
    """However often it looks whether the first one has ended,
    it takes one place and one request of its key's."""
    set_limit(
        tenant_id=somebody.tenant.id,
        key_id=somebody.key.id,
        actor="user:tests",
        requests_per_minute=4,
        concurrent=2,
    )
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    first, twin = (
        threading.Thread(target=lambda: answers.append(chat("hi", headers={"Idempotency-Key": "k"})))
        for _ in range(2)
    )
    first.start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    twin.start()
    time.sleep(1.5)
    assert answers == []
    engine.hold.set()
    first.join()
    twin.join()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert chat("ho").headers["ratelimit-remaining"] == "1"
    assert len(engine.requests) == len(somebody.turns()) == 2


def test_an_idempotency_key_with_another_body(chat: Chat, somebody: Somebody) -> None:
    chat("hi", headers={"Idempotency-Key": "k"})

    refused(chat("ho", headers={"Idempotency-Key": "k"}), 422, "idempotency_key_reused", "Idempotency-Key")
    assert len(somebody.turns()) == 1


def test_the_repetition_of_a_turn_that_is_deleted_in_this_moment_is_answered_anew(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    first = chat("hi", headers={"Idempotency-Key": "k"})
    used = [
        create_key(tenant=somebody.tenant, user=somebody.user, name=str(number), scopes=[KeyScope.CHAT])
        for number in range(DATABASE_POOL)
    ]
    answers: list[httpx.Response] = []
    again = threading.Thread(target=lambda: answers.append(chat("hi", headers={"Idempotency-Key": "k"})))
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        # whoever is to read the stored reply waits behind those who write down that these keys were used
        names = [key.pk for key, _ in used]
        assert len(ApiKey.objects.select_for_update(no_key=True).filter(pk__in=names)) == len(used)
        for _, secret in used:
            assert chat("ho", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
        wait_for_a_lock(beside=1)
        again.start()
        time.sleep(0.5)
        assert answers == []
        Turn.objects.filter(pk=first.headers["x-turn-id"]).delete()
    again.join()

    (answer,) = answers
    assert answer.status_code == 200
    assert "x-idempotent-replay" not in answer.headers
    assert answer.headers["x-turn-id"] != first.headers["x-turn-id"]
    assert answer.headers["x-turn-id"] in {str(turn.id) for turn in somebody.turns()}
    assert len(engine.requests) == len(used) + 2
