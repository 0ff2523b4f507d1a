"""Gateways that die, and gateways that only seem to:
stopped, swapped out, or on a machine that was paused."""

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable

import httpx
import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.conversations.holders import LOST_AFTER_S
from apps.conversations.models import Turn, TurnHolder
from apps.conversations.services import fail_lost_turns
from kernel.tenancy import system_scope
from tests.api.checks import HI, refused, states, wait_for
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.fake_generation import ONE_SHORT_SENTENCE
from tests.tenants import Somebody


@pytest.fixture(scope="module")
def stoppable(start_gateway: Callable[..., GatewayProcess]) -> GatewayProcess:
    """A second gateway."""
    return start_gateway()


def silence(holder: uuid.UUID | None) -> int:
    """Make it as if the seconds since a gateway's last sign of life had passed; return of how many."""
    with system_scope("tests"):
        seen = TurnHolder.objects.filter(id=holder)
        return seen.update(seen_at=F("seen_at") - dt.timedelta(seconds=LOST_AFTER_S))


def look_for_lost() -> int:
    """Do what upkeep does."""
    with system_scope("tests"):
        return fail_lost_turns(older_than_s=360)


class Asked:
    """A request to one gateway, answered in a thread."""

    def __init__(self, gateway: GatewayProcess, somebody: Somebody, *, stream: bool) -> None:
        self.answers: list[httpx.Response] = []

        def ask() -> None:
            self.answers.append(
                httpx.post(
                    f"{gateway.url}/v1/chat/completions",
                    json={**HI, "stream": stream},
                    headers={**somebody.headers, "Idempotency-Key": "k"},
                    trust_env=False,
                    timeout=60,
                )
            )

        self._thread = threading.Thread(target=ask)
        self._thread.start()

    def answer(self) -> httpx.Response:
        self._thread.join()
        (answer,) = self.answers
        return answer


def stop_until_given_up(gateway: GatewayProcess, somebody: Somebody) -> None:
    """Stop a gateway until the turn that it holds is presumed lost."""
    gateway.pause()
    (turn,) = somebody.turns()

    def given_up() -> bool:
        silence(turn.holder_id)  # once more: its last sign of life may have been on its way
        return look_for_lost() == 1

    wait_for(given_up)
    assert states(somebody) == ["failed"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_gateway_that_was_stopped_for_long_gives_its_whole_reply(
    stoppable: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    engine.hold = threading.Event()
    asked = Asked(stoppable, somebody, stream=stream)
    engine.wait_for(lambda: len(engine.requests) == 1)
    stop_until_given_up(stoppable, somebody)
    engine.hold.set()
    stoppable.resume()

    answer = asked.answer()

    assert answer.status_code == 200
    if stream:
        assert text_of(frames(answer.text)) == "One short sentence."
        assert answer.text.endswith("data: [DONE]\n\n")
    else:
        assert answer.json()["choices"][0]["message"]["content"] == "One short sentence."
    (turn,) = somebody.turns()
    assert (turn.state, turn.error, turn.presumed_lost_at) == ("complete", "", None)
    assert turn.output_ids == [token.id for token in ONE_SHORT_SENTENCE]
    again = chat("hi", stream=stream, headers={"Idempotency-Key": "k"})
    assert again.headers["x-idempotent-replay"] == "true"
    assert again.headers["x-turn-id"] == answer.headers["x-turn-id"] == str(turn.id)
    assert len(somebody.turns()) == len(engine.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_gateway_in_whose_place_another_answered_gives_no_second_reply(
    stoppable: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    held = engine.hold = threading.Event()
    asked = Asked(stoppable, somebody, stream=stream)
    engine.wait_for(lambda: len(engine.requests) == 1 and engine.requests[0].sent == 4)
    stop_until_given_up(stoppable, somebody)
    engine.hold = None

    again = chat("hi", stream=stream, headers={"Idempotency-Key": "k"})
    held.set()
    stoppable.resume()
    answer = asked.answer()

    assert again.status_code == 200
    assert "x-idempotent-replay" not in again.headers
    if stream:
        last = frames(answer.text)[-1]
        assert set(last) == {"error"}
        assert "[DONE]" not in answer.text
    else:
        refused(answer, 409, "conflict", None)
    lost, done = somebody.turns()
    assert (lost.state, lost.error, lost.reply) == ("failed", "the gateway stopped", None)
    assert (str(done.id), done.state, done.idempotency_key) == (again.headers["x-turn-id"], "complete", "k")


def test_a_retry_takes_over_from_a_gateway_that_died(
    start_gateway: Callable[..., GatewayProcess], chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    dying = start_gateway()
    engine.hold = threading.Event()

    def lost() -> None:
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{dying.url}/v1/chat/completions", json=HI, headers=somebody.headers, trust_env=False)

    first = threading.Thread(target=lost)
    first.start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    dying.kill()
    first.join()
    engine.hold = None
    assert states(somebody) == ["pending"]

    again = chat("hi", headers={"X-Stainless-Retry-Count": "1"})

    assert again.status_code == 200
    given_up, complete = somebody.turns()
    assert (given_up.state, given_up.error) == ("failed", "given up by its client, who sent it again")
    assert (complete.state, complete.session_id) == ("complete", given_up.session_id)


@pytest.mark.parametrize("upkeep_looks", [False, True])
def test_a_repeated_idempotency_key_is_answered_soon_after_its_gateway_died(
    start_gateway: Callable[..., GatewayProcess],
    chat: Chat,
    somebody: Somebody,
    engine: FakeEngine,
    *,
    upkeep_looks: bool,
) -> None:
    dying = start_gateway()
    engine.hold = threading.Event()
    named = {"Idempotency-Key": "k"}

    def lost() -> None:
        with pytest.raises(httpx.TransportError):
            httpx.post(
                f"{dying.url}/v1/chat/completions",
                json=HI,
                headers={**somebody.headers, **named},
                trust_env=False,
                timeout=30,
            )

    first = threading.Thread(target=lost)
    first.start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    time.sleep(0.1)
    dying.kill()
    first.join()
    engine.hold = None
    (turn,) = somebody.turns()
    assert turn.state == "pending"
    assert silence(turn.holder_id) == 1
    if upkeep_looks:
        assert look_for_lost() == 1
        assert states(somebody) == ["failed"]

    again = chat("hi", headers=named)

    assert again.status_code == 200
    assert "x-idempotent-replay" not in again.headers
    lost_one, complete = somebody.turns()
    assert (lost_one.state, lost_one.error) == ("failed", "the gateway stopped")
    assert (complete.state, complete.idempotency_key) == ("complete", "k")


def wait_for_beats(holder: uuid.UUID | None) -> None:
    """Wait until a holder was seen again, and again:
    a row may be made by who looks for it, time goes on by beats."""
    with system_scope("tests"):
        seen = TurnHolder.objects.filter(id=holder).values_list("seen_at", flat=True)
        wait_for(seen.exists)
        first = seen.get()
        wait_for(lambda: seen.get() > first)


def test_an_idempotency_key_of_a_running_request_takes_nothing_over(
    gateway: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    asking = [
        threading.Thread(target=lambda: answers.append(chat("hi", headers={"Idempotency-Key": "k"})))
        for _ in range(2)
    ]
    asking[0].start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    asking[1].start()
    (turn,) = somebody.turns()
    wait_for_beats(turn.holder_id)
    engine.hold.set()
    for one in asking:
        one.join()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(somebody.turns()) == len(engine.requests) == 1


def test_a_gateway_whose_sign_of_life_was_deleted_keeps_its_turns(
    gateway: GatewayProcess, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    answers: list[httpx.Response] = []
    asking = [
        threading.Thread(target=lambda: answers.append(chat("hi", headers={"Idempotency-Key": "k"})))
        for _ in range(2)
    ]
    asking[0].start()
    engine.wait_for(lambda: len(engine.requests) == 1)
    (turn,) = somebody.turns()
    with system_scope("tests"), transaction.atomic():
        TurnHolder.objects.all().delete()
        Turn.objects.filter(id=turn.id).update(created_at=timezone.now() - dt.timedelta(minutes=2))
    asking[1].start()
    wait_for_beats(turn.holder_id)
    with system_scope("tests"):
        TurnHolder.objects.all().delete()
    assert look_for_lost() == 0
    wait_for_beats(turn.holder_id)
    engine.hold.set()
    for one in asking:
        one.join()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted("x-idempotent-replay" in answer.headers for answer in answers) == [False, True]
    assert states(somebody) == ["complete"]
    assert len(engine.requests) == 1
