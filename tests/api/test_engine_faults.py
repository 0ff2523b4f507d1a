"""Engines that refuse, that are not there, and that die."""

import pytest

from tests.api.checks import refused, states
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.fake_engine import FakeEngine
from tests.fake_generation import ONE_SHORT_SENTENCE
from tests.tenants import Somebody


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [(429, 429, "engine_busy"), (500, 503, "engine_unavailable"), (503, 503, "engine_unavailable")],
)
def test_an_engine_that_refuses_before_the_first_token_gives_its_meaning_as_a_status(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool, answer: int, status: int, code: str
) -> None:
    engine.refuse_next(answer, "secret inner words")

    response = chat("hi", stream=stream)

    refused(response, status, code, None)
    assert response.headers["retry-after"] == "1"
    assert "secret inner words" not in response.text
    (turn,) = somebody.turns()
    assert turn.state == "failed"
    assert turn.error.startswith(f"{code}: ")


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_is_not_there(
    chat: Chat, somebody: Somebody, engine: FakeEngine, *, stream: bool
) -> None:
    engine.stop()

    refused(chat("hi", stream=stream), 503, "engine_gone", None)
    assert states(somebody) == ["failed"]


@pytest.mark.parametrize("how", ["die_after", "fail_after"])
def test_an_engine_that_dies_in_mid_stream_ends_in_an_error_frame(
    chat: Chat, somebody: Somebody, engine: FakeEngine, how: str
) -> None:
    engine.delay_s = 0.02
    setattr(engine, how, 3)

    response = chat("hi", stream=True)

    assert response.status_code == 200
    *head, last = frames(response.text)
    assert text_of(head) == "One short sentence"
    assert all(event["choices"][0]["finish_reason"] is None for event in head)
    assert set(last) == {"error"}
    assert last["error"]["type"] == "server_error"
    assert "[DONE]" not in response.text
    (turn,) = somebody.turns()
    assert turn.state == "failed"
    assert turn.output_ids == [token.id for token in ONE_SHORT_SENTENCE[:3]]
    assert turn.reply == {"role": "assistant", "content": "One short sentence"}


def test_an_engine_that_dies_in_a_whole_reply(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    engine.die_after = 2

    response = chat("hi")

    assert response.status_code in (502, 503)
    assert states(somebody) == ["failed"]


def test_a_failed_request_sent_again_is_answered(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    engine.refuse_next(503)
    first = chat("hi", headers={"X-Stainless-Retry-Count": "0"})
    second = chat("hi", headers={"X-Stainless-Retry-Count": "1"})

    assert (first.status_code, second.status_code) == (503, 200)
    failed, complete = somebody.turns()
    assert (failed.state, complete.state) == ("failed", "complete")
    assert failed.session_id == complete.session_id
