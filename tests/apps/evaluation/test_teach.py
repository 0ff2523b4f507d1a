"""The demo's whole course against a platform that learns by rule."""

import asyncio

import pytest

from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.choice import Aims
from apps.evaluation.demo import teach as teaching
from apps.evaluation.demo.board import Board
from apps.evaluation.demo.report import build_report
from apps.evaluation.demo.talk import Talker
from apps.evaluation.demo.teach import Course, Doors, teach
from apps.evaluation.users import load_user
from tests.apps.evaluation.fake_platform import FakePlatform


async def _run(
    platform: FakePlatform, *, budget_s: float = 300.0
) -> tuple[Board, Course, Talker, RequestLog]:
    log = RequestLog()
    board = Board(read=platform.facts, budget_s=budget_s)
    chats = [Chat(base_url=platform.base_url, api_key="key", log=log) for _ in range(2)]
    async with asyncio.timeout(120):
        course, talker = await teach(
            board=board,
            policy="demo-1",
            person=load_user("one-short-sentence"),
            seed=3,
            batch=8,
            user=chats[0],
            examiner=chats[1],
            doors=Doors(go_back=platform.go_back, pause_training=platform.pause),
            aims=Aims(),
            seen=lambda: None,
        )
    for chat in chats:
        await chat.close()
    return board, course, talker, log


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.evaluation.demo.board.REFRESH_S", 0.05)
    monkeypatch.setattr("apps.evaluation.measure._PAUSE_S", 0.05)
    monkeypatch.setattr("apps.evaluation.demo.talk._PAUSE_S", 0.05)
    monkeypatch.setattr("apps.evaluation.demo.talk._SETTLES_S", 0.1)


async def test_it_stops_when_learned_and_measures_before_and_after() -> None:
    async with FakePlatform(curve=[0.0, 0.1, 0.2, 0.4, 0.6, 1.0]) as platform:
        board, course, talker, log = await _run(platform)
        board.facts = platform.facts()
    assert (course.before.score.passed, course.before.score.of) == (0, 60)
    assert (course.after.score.passed, course.after.score.of) == (60, 60)
    assert course.chosen >= 5
    assert course.why_stopped == "learned"
    assert not platform.training
    report = build_report(
        board=board, course=course, talker=talker, log=log, versions=[], talk={"live": 1}, about={"seed": 3}
    )
    assert report["bar"] == {
        "before at most 9": True,
        "after at least 30": True,
        "at least 5 swaps": True,
        "no failed request": True,
    }
    assert (report["before"], report["after"], report["of"]) == (0, 60, 60)
    assert report["before_on_topic"] == report["after_passed_on_topic"] == 60
    assert report["sessions"] == report["complaints"] + report["thanks"]
    assert len(report["examples"]) == 3


async def test_held_out_and_validation_questions_are_only_asked_of_named_versions() -> None:
    async with FakePlatform(curve=[0.0, 0.3, 0.5, 0.7, 0.9, 1.0]) as platform:
        await _run(platform)
    tasks = load_user("one-short-sentence").tasks
    guarded = {question.text for question in (*tasks.reporting, *tasks.choosing)}
    for request in platform.requests:
        first = request["messages"][0]["content"]  # type: ignore[index]
        assert ("@" in str(request["model"])) == (first in guarded)


async def test_a_version_that_overshoots_is_left_for_the_best_one() -> None:
    async with FakePlatform(curve=[0.0, 0.2, 0.75, 0.0, 0.0, 0.0, 0.0]) as platform:
        platform.waits_for_exam = True
        _, course, _, _ = await _run(platform, budget_s=teaching.FINISH_S + 16)
    assert course.chosen == 2
    assert platform.live == 2
    assert platform.moves_back[-1] == 2
    assert course.after.score.passed > 30


async def test_failed_requests_are_counted_and_asked_again() -> None:
    async with FakePlatform(curve=[0.0, 0.5, 1.0]) as platform:
        platform.fail = {3, 70, 71}
        _, course, _, log = await _run(platform)
    assert len(log.failures) == 3
    assert "503" in log.failures[0].error or "no engine" in log.failures[0].error
    assert course.before.score.of == course.after.score.of == 60


@pytest.mark.parametrize(
    ("ready", "unsettled", "ahead", "room"), [(0, 0, 0, 10), (4, 2, 1, 3), (8, 2, 0, 0), (20, 0, 5, 0)]
)
def test_talk_stays_about_one_batch_ahead(ready: int, unsettled: int, ahead: int, room: int) -> None:
    from apps.evaluation.demo.ledger import Facts

    board = Board(read=Facts, budget_s=1.0, facts=Facts(ready=ready, unsettled=unsettled))
    assert teaching.room(board, ahead=ahead, batch=8) == room
