"""Several engines behind the gateway: a request that finds one gone or unwilling is
answered by another, once."""

import time
from collections.abc import Iterator

import httpx
import pytest
from django.conf import settings

from apps.engines.models import Engine, EngineState
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.loaded import make_loaded
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody, add_version


@pytest.fixture
def other(ledger: None) -> Iterator[FakeEngine]:
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


def text(response: httpx.Response, *, stream: bool) -> str:
    """Return a reply's text, whichever way it came."""
    if stream:
        return text_of(frames(response.text))
    return str(response.json()["choices"][0]["message"]["content"])


def both_have(somebody: Somebody, *engines: FakeEngine) -> None:
    """Let a version of the policy be live and proven on all of them."""
    version = add_version(somebody.policy)
    for engine in engines:
        make_loaded(version, engine)


def first_asked(*engines: FakeEngine) -> FakeEngine:
    """Return the one engine that has been asked something."""
    (found,) = [engine for engine in engines if engine.requests]
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_finds_an_engine_gone_is_answered_and_keeps_the_next_from_going_there(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine, *, stream: bool
) -> None:
    engine.stop()
    answers: list[httpx.Response] = []
    end = time.monotonic() + 20
    while Engine.objects.get(url=engine.url).state == EngineState.READY and time.monotonic() < end:
        answers.append(chat(f"hi {len(answers)}", stream=stream))
        time.sleep(0.05)

    assert Engine.objects.get(url=engine.url).state == EngineState.LOST
    assert {answer.status_code for answer in answers} == {200}
    assert {text(answer, stream=stream) for answer in answers} == {"One short sentence."}
    assert len(other.requests) == len(answers)
    there = Engine.objects.get(url=other.url).pk
    assert {(turn.state, turn.engine_id) for turn in somebody.turns()} == {("complete", there)}
    with system_scope("test"):
        assert OutboxMessage.objects.filter(task="workers.upkeep.reconcile_engines").count() == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["busy", "failing", "without the adapter", "dying"])
def test_an_engine_that_refuses_before_the_first_token_is_left_for_another_that_has_the_version(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine, how: str, *, stream: bool
) -> None:
    both_have(somebody, engine, other)
    chat("which is preferred?")
    preferred = first_asked(engine, other)
    second = other if preferred is engine else engine
    if how == "without the adapter":
        preferred.adapters.clear()
    elif how == "dying":
        preferred.die_after = 0
    else:
        preferred.refuse_next(429 if how == "busy" else 500)

    response = chat("hi", stream=stream)

    assert response.status_code == 200
    assert text(response, stream=stream) == "One short sentence."
    assert (len(preferred.requests), len(second.requests)) == (2, 1)
    assert second.requests[0].input_ids == preferred.requests[1].input_ids
    turn = somebody.turns()[-1]
    assert (turn.state, turn.engine_id) == ("complete", Engine.objects.get(url=second.url).pk)
    assert len(somebody.turns()) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_sent_to_a_second_engine_and_to_no_third(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine, *, stream: bool
) -> None:
    with FakeEngine(api_key=settings.ENGINE_API_KEY) as third:
        Engine.objects.create(url=third.url, state=EngineState.READY, boot_id="1")
        for one in (engine, other, third):
            one.refuse_next(500, times=2)

        refused(chat("hi", stream=stream), 503, "engine_unavailable", None)

        assert sorted(len(one.requests) for one in (engine, other, third)) == [0, 1, 1]
    assert [turn.state for turn in somebody.turns()] == ["failed"]


def test_no_engine_without_the_version_is_asked_for_it(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine
) -> None:
    both_have(somebody, engine)
    engine.refuse_next(500)

    refused(chat("hi"), 503, "engine_unavailable", None)
    assert other.requests == []


def test_what_has_begun_stays_where_it_is(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine
) -> None:
    for one in (engine, other):
        one.die_after, one.delay_s = 3, 0.02

    response = chat("hi", stream=True)

    *head, last = frames(response.text)
    assert text_of(head) == "One short sentence"
    assert set(last) == {"error"}
    assert len(engine.requests) + len(other.requests) == 1
    assert [turn.state for turn in somebody.turns()] == ["failed"]


def test_what_is_refused_for_what_it_says_is_refused_by_one(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine
) -> None:
    for one in (engine, other):
        one.refuse_next(400, "the request is wrong")

    assert chat("hi").status_code == 400
    assert len(engine.requests) + len(other.requests) == 1


def test_no_tenant_names_an_adapter(
    chat: Chat, somebody: Somebody, engine: FakeEngine, other: FakeEngine
) -> None:
    # an engine loads whatever adapter it was ever told of for whoever names it
    stranger = add_version(add_somebody("globex").policy)
    make_loaded(stranger, engine)

    for name in (stranger.served_name, f"base:{stranger.served_name}", "base"):
        refused(chat("hi", model=name), 404, "model_not_found", "model")
    for name in ("lora_path", "lora_name", "adapter"):
        refused(chat("hi", **{name: stranger.served_name}), 400, "unknown_parameter", name)
    assert engine.requests == other.requests == []
