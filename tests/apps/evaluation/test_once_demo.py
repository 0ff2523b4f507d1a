"""Told once, shown: which replies, what they were told, and what is said where the time is too short."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from apps.evaluation.demo import once
from apps.evaluation.demo.once import Doors, Once
from apps.evaluation.demo.once_report import build_report, print_report
from apps.evaluation.personalization.methods import METHODS
from tests.apps.evaluation.personalization.fake_world import USER, FakeWorld


async def _told(world: FakeWorld, *, budget_s: float, state: str = "held") -> dict[str, Any]:
    subject = await world.open(method=METHODS["joined"], tenant="")
    assert subject is not None

    async def account() -> Mapping[str, Any]:
        course = [{"version": 1, "passes": 13, "of": 16}]
        shadow = {"replies": 8, "tokens": 300}
        return {"lesson": {"state": state, "reason": "no gain", "course": course}, "shadow": shadow}

    async def rest() -> None:
        await world.rest(subject)

    said: list[str] = []
    course = await Once(
        person=USER,
        policy="default",
        user=subject.user,
        examiner=subject.examiner,
        doors=Doors(account=account, rest=rest),
        budget_s=budget_s,
        say=said.append,
    ).run(seed=1)
    await world.close(subject)
    report = build_report(course, log=subject.user.log, seconds=1.0, about={"seed": 1})
    return {**report, "said": said, "resting": world.minds[subject.tenant].resting}


async def test_one_complaint_and_what_became_of_it() -> None:
    async with FakeWorld(per_version=1, learned_at=1) as world:
        report = await _told(world, budget_s=600.0)
        (mind,) = world.minds.values()
    assert [(row["what"], row["version"], row["told"], row["passed"]) for row in report["replies"]] == [
        ("before", 0, "nothing", False),
        ("the reply to the complaint", 1, "the complaint", True),
        ("the next question, in a new session", 1, "what is remembered", True),
        ("version 1, the first", 1, "nothing", True),
        ("version 1, at the end", 1, "nothing", True),
    ]
    assert (report["before"]["passed"], report["after"]["passed"], report["after"]["of"]) == (0, 20, 20)
    assert report["complaint"] in USER.complaints
    assert report["never_said_again"].startswith(
        f'Said once, never again: "{report["complaint"]}" It left the prompt '
    )
    assert all(report["bar"].values())
    assert report["resting"]
    talk = [body for body in mind.requests if "@" not in body["model"]]
    assert [len(body["messages"]) for body in talk] == [1, 3]
    kept = {question.text for question in (*USER.tasks.reporting, *USER.tasks.choosing)}
    assert not kept & {body["messages"][0]["content"] for body in talk}

    shown = io.StringIO()
    print_report(Console(file=shown, width=160), report)
    assert "before: 0 of 20 held-out replies to taste, told nothing (version 0)" in shown.getvalue()
    assert "Every promise of the demo was kept." in shown.getvalue()


async def test_too_little_time_is_said_and_the_reply_that_is_told_is_shown_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeWorld(per_version=1000) as world:
        report = await _told(world, budget_s=1.0, state="teaching")
    assert report["why_stopped"] == "the time was over before any version was made: give it more --minutes"
    assert [row["passed"] for row in report["replies"]] == [False, True, True, False]
    assert (report["before"], report["after"], report["left_the_prompt_s"]) == (None, None, None)
    assert report["never_said_again"].endswith("The prompt still says it: the weights do not hold it yet.")
    assert sorted(report["bar"]) == ["no failed request", "remembered within 60 s"]


async def test_what_left_the_prompt_while_it_is_taught_on_is_said_never_again() -> None:
    async with FakeWorld(per_version=1, learned_at=1) as world:
        report = await _told(world, budget_s=8.0, state="teaching")
    assert report["why_stopped"] == "the time was over"
    assert report["left_the_prompt_s"] is not None
    assert report["never_said_again"].startswith("Said once, never again: ")
    assert report["said"].count("the prompt says it no more") == 1


async def test_what_is_learned_too_late_to_be_seen_while_waiting_is_seen_at_the_end() -> None:
    async with FakeWorld(per_version=1000, learned_at=1, late=1) as world:
        report = await _told(world, budget_s=1.0, state="teaching")
    assert report["never_said_again"].startswith("Said once, never again: ")


async def test_a_plateau_ends_the_wait_with_its_reason() -> None:
    async with FakeWorld(per_version=1000) as world:
        report = await _told(world, budget_s=600.0, state="plateau")
    assert report["why_stopped"] == "no better version came any more: no gain"
    assert report["bar"]["at least 15 of 60 more held-out replies to taste"] is False


async def test_somebody_who_is_content_says_nothing() -> None:
    async with FakeWorld(learned_at=0) as world:
        report = await _told(world, budget_s=once.EXAMINED_FROM_S - 1)
    assert (report["complaints"], report["replies"]) == (0, [])
    assert report["why_stopped"] == "every first reply was to taste: there was nothing to complain of"
