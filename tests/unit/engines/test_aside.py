"""Work beside people's requests: as many at once as there is room for, and none once there is none."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.engines import aside
from apps.engines.aside import MOST_AT_ONCE, Answer, ask_aside, score_aside
from apps.engines.chat import chat_format
from apps.engines.client import EngineClient
from apps.engines.replies import EngineBroken
from tests.fake_engine import FakeEngine

PROMPTS = [[number, 1, 2] for number in range(12)]


@pytest.fixture
def engine(settings: Settings, chat_model: Path) -> Iterator[FakeEngine]:
    settings.MODEL_PATH = chat_model
    chat_format.cache_clear()
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        yield running
    chat_format.cache_clear()


class Held:
    """An engine that keeps every reply until it is told otherwise, and how much room there is."""

    def __init__(self, engine: FakeEngine, room: int) -> None:
        self.engine, self.room = engine, room
        engine.hold = threading.Event()

    def ask(self) -> list[Answer]:
        return ask_aside(
            url=self.engine.url,
            adapter=None,
            prompts=PROMPTS,
            sampling={"max_new_tokens": 4},
            room=lambda: self.room,
        )

    def seen(self, count: int) -> None:
        self.engine.wait_for(lambda: len(self.engine.requests) == count)
        threading.Event().wait(0.5)  # for more that should not come
        assert len(self.engine.requests) == count


def test_there_are_never_more_than_there_is_room_for_and_room_may_grow(engine: FakeEngine) -> None:
    held = Held(engine, 2)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(held.ask)
        held.seen(2)
        held.room = 5
        held.seen(5)
        held.room = 100  # an engine keeps two places for people
        held.seen(MOST_AT_ONCE)
        assert engine.hold is not None
        engine.hold.set()
        answers = asked.result()
    assert all(answer.whole for answer in answers)
    assert sorted(request.input_ids[0] for request in engine.requests) == list(range(12))


def test_once_there_is_no_room_all_is_given_up_though_there_is_room_again(engine: FakeEngine) -> None:
    held = Held(engine, 3)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(held.ask)
        held.seen(3)
        held.room = 0
        answers = asked.result()
    assert not any(answer.whole for answer in answers)
    assert len(engine.requests) == 3
    engine.wait_for(lambda: all(request.aborted is not None for request in engine.requests))
    assert score_aside(url=engine.url, asked=[(None, [1], [2])], room=lambda: 0) is None
    assert len(engine.requests) == 3


def test_scores_come_in_the_order_in_which_they_were_asked(engine: FakeEngine) -> None:
    engine.score = lambda _, token: -float(token)
    asked = [(None, [1, 2], [number, number + 1]) for number in range(20)]
    found = score_aside(url=engine.url, asked=asked, room=lambda: MOST_AT_ONCE)
    assert found == [[-float(number), -float(number + 1)] for number in range(20)]


def test_what_breaks_in_the_moment_in_which_it_is_given_up_is_given_up_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = threading.Event()

    async def one(_client: EngineClient, _index: int) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise EngineBroken("the engine stopped in the middle of the reply") from None

    def room() -> int:
        return 0 if begun.is_set() else 1

    assert aside._watched("http://127.0.0.1:9", 1, one, room) is False
    gc.collect()
    assert [row.getMessage() for row in caplog.records] == []


def test_an_engine_that_breaks_is_said_by_what_it_did(engine: FakeEngine) -> None:
    engine.die_after = 2
    with pytest.raises(EngineBroken, match="the engine stopped in the middle of the reply"):
        ask_aside(
            url=engine.url, adapter=None, prompts=PROMPTS, sampling={"max_new_tokens": 4}, room=lambda: 8
        )
