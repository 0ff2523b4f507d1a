"""Whole benchmarks against policies that learn by rule:
convergence, cap, what a kill leaves, what is asked of whom."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from apps.evaluation.personalization import run as runs
from apps.evaluation.personalization.course import carry_out
from apps.evaluation.personalization.journal import Journal, past_of, read
from apps.evaluation.personalization.plan import Plan, RunKey, Terms
from apps.evaluation.personalization.report import build_report
from embedded.home import REPOSITORY
from tests.apps.evaluation.personalization.fake_world import (
    QUICK,
    USER,
    Died,
    FakeWorld,
    Silent,
    lines_of,
    plan_of,
)

OPD, FROZEN, MEMORY, JOINED = (RunKey(1, USER.name, name) for name in ("opd", "frozen", "memory", "joined"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RETRY_S", 0.01)
    monkeypatch.setattr("apps.evaluation.measure._PAUSE_S", 0.01)


async def _done(
    world: FakeWorld,
    path: Path,
    plan: Plan,
    progress: Silent | None = None,
    *,
    seconds: float = 60,
    parallel: int = 1,
) -> bool:
    with Journal(path, code="abc", machine="2 cores") as journal:
        async with asyncio.timeout(60):
            return await carry_out(
                plan,
                journal=journal,
                platform=world,
                progress=progress or Silent(),
                seconds=seconds,
                parallel=parallel,
            )


def _report(path: Path, plan: Plan) -> dict[str, object]:
    with Journal(path, code="abc", machine="2 cores") as journal:
        return build_report(plan, journal.past(plan), {"command": "x"})


async def test_convergence_is_counted_to_the_third_right_first_reply(tmp_path: Path) -> None:
    """Seven complaints make a version, a failed session has seven:
    versions 0, 1, then 2, which has learned."""
    plan = plan_of("opd")
    async with FakeWorld() as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    with Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores") as journal:
        past = journal.past(plan)[OPD]
    assert [line["passed"] for _, line in sorted(past.sessions.items())] == [False, False, True, True, True]
    assert [line["complaints"] for _, line in sorted(past.sessions.items())] == [7, 7, 0, 0, 0]
    assert [line["version"] for _, line in sorted(past.sessions.items())] == [0, 1, 2, 2, 2]
    ended = past.steps["ended"]
    assert (ended["converged"], ended["sessions"], ended["complaints"], ended["version"]) == (True, 5, 14, 2)
    held = past.steps["held_out"]
    assert (held["passed"], held["of"], held["by_question"]) == (60, 60, [3] * 20)
    assert (held["not_empty"], held["no_loop"], held["on_topic"]) == (60, 60, 60)
    assert held["mean_tokens"] > 0


async def test_what_trains_is_left_alone_after_the_last_session_and_measured_then(tmp_path: Path) -> None:
    plan = plan_of("opd", "frozen", "memory", "joined")
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        assert await _done(world, path, plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        past = journal.past(plan)
    lines = read(path)
    for key in (OPD, JOINED):
        events = [line["event"] for line in lines if line["run"] == str(key)]
        assert events.index("idled") > max(n for n, event in enumerate(events) if event == "session")
        assert events.index("idled") < events.index("held_out")
        assert past[key].steps["idled"]["minutes"] == 0
        assert past[key].steps["idled"]["version"] == past[key].steps["held_out"]["version"]
    assert "idled" not in past[FROZEN].steps | past[MEMORY].steps


async def test_what_was_still_under_way_at_the_end_of_the_idle_minutes_is_served_and_not_held_out(
    tmp_path: Path,
) -> None:
    plan = plan_of("joined", "opd")
    path = tmp_path / "state.jsonl"
    async with FakeWorld(late=1) as world:
        assert await _done(world, path, plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        past = journal.past(plan)
    joined, opd = past[JOINED].steps, past[OPD].steps
    assert (joined["idled"]["version"], joined["held_out"]["version"], joined["held_out"]["passed"]) == (
        0,
        0,
        0,
    )
    assert joined["as_served"]["version"] == 1
    assert joined["ended"]["preferences"] == joined["idled"]["preferences"] == {"active": 1}
    assert (opd["idled"]["version"], opd["held_out"]["version"]) == (2, 2)


async def test_a_run_that_does_not_converge_counts_as_the_cap(tmp_path: Path) -> None:
    plan = plan_of("frozen")
    async with FakeWorld() as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    report = _report(tmp_path / "state.jsonl", plan)
    (run,) = report["runs"]  # type: ignore[misc]
    assert (run["converged"], run["sessions"], run["complaints"]) == (False, 9, 63)
    assert (run["held_out"]["passed"], run["held_out"]["of"]) == (0, 60)
    frozen = report["methods"]["frozen"]  # type: ignore[index]
    assert frozen["sessions"] == {"mean": 9.0, "median": 9.0, "bootstrap": [9.0, 9.0]}
    assert report["hinted_teacher"][USER.name]["passed"] == 180  # type: ignore[index]
    assert report["frozen_base"][USER.name]["passed"] == 0  # type: ignore[index]
    assert report["missing"] == []


async def test_a_policy_that_stands_still_is_the_same_however_many_sessions_are_held_side_by_side(
    tmp_path: Path,
) -> None:
    """Eight at a time would overshoot the third right reply:
    what lies beyond it is left out of the figures."""
    plan = plan_of("frozen")
    async with FakeWorld(learned_at=0) as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    (run,) = _report(tmp_path / "state.jsonl", plan)["runs"]  # type: ignore[misc]
    assert (run["converged"], run["sessions"], run["complaints"], run["passed"]) == (True, 3, 0, [True] * 3)
    assert len(run["versions_by_session"]) == 8


async def test_a_benchmark_that_dies_between_sessions_goes_on_and_ends_as_if_nothing_had_been(
    tmp_path: Path,
) -> None:
    plan = plan_of("opd")
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        for _ in range(2):
            with pytest.raises(ExceptionGroup) as died:
                await _done(world, path, plan, Silent(stop_after=1))
            assert isinstance(died.value.exceptions[0], Died)
        assert await _done(world, path, plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        begun = [line["session"] for line in lines_of(journal, OPD, "session-begun")]
        assert len(lines_of(journal, OPD, "begun")) == 1
        ended = journal.past(plan)[OPD].steps["ended"]
    assert begun == [1, 2, 3, 4, 5]
    assert (ended["sessions"], ended["complaints"], ended["interrupted_sessions"]) == (5, 14, 0)


async def test_a_session_that_was_killed_is_held_again_and_counted_as_interrupted(tmp_path: Path) -> None:
    plan = plan_of("opd")
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        world.hang_at = 240 + 8 + 3  # base and hinted teacher, the first session, three of the second
        task = asyncio.create_task(_done(world, path, plan))
        await world.hung.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (slug,) = [slug for slug in world.minds if slug.startswith("opd")]
        assert world.minds[slug].resting
        assert slug in world.closed
        assert await _done(world, path, plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        assert [line["session"] for line in lines_of(journal, OPD, "session-begun")][:3] == [1, 2, 2]
        ended = journal.past(plan)[OPD].steps["ended"]
    assert ended["interrupted_sessions"] == 1
    assert ended["converged"]


async def test_a_process_that_is_killed_outright_loses_one_session(tmp_path: Path) -> None:
    """SIGKILL in the middle of the second session:
    no line is lost, no lock stays, and another process goes on."""
    plan = plan_of("opd")
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        world.hang_at = 240 + 8 + 3
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.apps.evaluation.personalization.child", world.base_url, str(path)),
            env={**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'platform'}"},
            cwd=REPOSITORY,
        )
        hung, ended = asyncio.ensure_future(world.hung.wait()), asyncio.ensure_future(child.wait())
        await asyncio.wait({hung, ended}, return_when=asyncio.FIRST_COMPLETED)
        assert not ended.done(), "the child came to its end before it was killed"
        child.kill()
        assert await ended == -9
        last = read(path)[-1]
        assert (last["event"], last["session"]) == ("session-begun", 2)
        assert await _done(world, path, plan)
    past = past_of(read(path), plan)[OPD]
    assert past.codes == {"child", "abc"}
    assert past.tenant == "opd-child"
    assert (past.steps["ended"]["interrupted_sessions"], sorted(past.sessions)) == (1, [1, 2, 3, 4, 5])


async def test_what_is_done_is_never_done_again(tmp_path: Path) -> None:
    plan = plan_of("opd", "frozen")
    async with FakeWorld() as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
        asked = sum(len(mind.requests) for mind in world.minds.values())
        progress = Silent()
        assert await _done(world, tmp_path / "state.jsonl", plan, progress)
        assert sum(len(mind.requests) for mind in world.minds.values()) == asked
    assert progress.sessions == progress.steps == []


async def test_a_run_whose_tenant_is_gone_begins_anew(tmp_path: Path) -> None:
    plan = plan_of("opd")
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        with pytest.raises(ExceptionGroup):
            await _done(world, path, plan, Silent(stop_after=2))
    async with FakeWorld() as other:
        assert await _done(other, path, plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        assert [line["session"] for line in lines_of(journal, OPD, "session")] == [1, 2, 1, 2, 3, 4, 5]
        assert journal.past(plan)[OPD].steps["ended"]["sessions"] == 5


async def test_when_the_minutes_are_over_nothing_more_begins(tmp_path: Path) -> None:
    plan = plan_of("opd")
    async with FakeWorld() as world:
        assert not await _done(world, tmp_path / "state.jsonl", plan, seconds=0)
        assert world.minds == {}
        assert await _done(world, tmp_path / "state.jsonl", plan)


async def test_runs_side_by_side_have_the_same_figures(tmp_path: Path) -> None:
    plan = plan_of("opd", "frozen", "combined", seeds=(1, 2))
    async with FakeWorld() as world:
        assert await _done(world, tmp_path / "state.jsonl", plan, parallel=4)
    report = _report(tmp_path / "state.jsonl", plan)
    figures = [(run["method"], run["seed"], run["sessions"], run["complaints"]) for run in report["runs"]]  # type: ignore[attr-defined]
    assert figures == [
        *(("opd", 1, 5, 14), ("frozen", 1, 9, 63), ("combined", 1, 5, 14)),
        *(("opd", 2, 5, 14), ("frozen", 2, 9, 63), ("combined", 2, 5, 14)),
    ]


async def test_memory_helps_from_the_next_reply_on_and_is_not_in_the_weights(tmp_path: Path) -> None:
    plan = plan_of("memory")
    async with FakeWorld() as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    (run,) = _report(tmp_path / "state.jsonl", plan)["runs"]  # type: ignore[misc]
    assert (run["sessions"], run["complaints"]) == (4, 1)
    assert (run["held_out"]["passed"], run["as_served"]["passed"]) == (0, 60)
    assert run["preferences"] == {"active": 1}


async def test_failed_requests_are_asked_again_and_counted(tmp_path: Path) -> None:
    plan = plan_of("opd")
    async with FakeWorld() as world:
        world.fail = {3, 241, 245}  # one of the base's, two of the first session
        assert await _done(world, tmp_path / "state.jsonl", plan)
    report = _report(tmp_path / "state.jsonl", plan)
    (run,) = report["runs"]  # type: ignore[misc]
    assert (run["sessions"], run["complaints"], run["failed_requests"]) == (5, 14, 2)
    assert report["references"][0]["base"]["failed_requests"] == 1  # type: ignore[index]


async def test_held_out_questions_are_only_asked_of_named_versions_and_after_the_talk(tmp_path: Path) -> None:
    plan = plan_of("opd")
    async with FakeWorld() as world:
        await _done(world, tmp_path / "state.jsonl", plan)
    kept = {question.text for question in (*USER.tasks.reporting, *USER.tasks.choosing)}
    for mind in world.minds.values():
        for body in mind.requests:
            named = "@" in body["model"]
            assert named == (body["messages"][0]["content"].partition("\n")[0] in kept)
        named = ["@" in body["model"] for body in mind.requests]
        assert named == sorted(named)


async def test_the_judge_sees_words_and_nothing_of_the_rule(tmp_path: Path) -> None:
    """What a policy's own conversation holds is the questions, the replies and the user's words."""
    plan = plan_of("opd")
    async with FakeWorld() as world:
        await _done(world, tmp_path / "state.jsonl", plan)
    words = {*USER.complaints, *USER.follow_ups, *USER.thanks, *(q.text for q in USER.tasks.session)}
    talk = [body for mind in world.minds.values() for body in mind.requests if "@" not in body["model"]]
    assert talk
    for body in talk:
        assert {message["content"] for message in body["messages"] if message["role"] == "user"} <= words
        assert {message["role"] for message in body["messages"]} <= {"user", "assistant"}
        assert set(body) == {"model", "messages", "max_tokens", "temperature", "stream", "stream_options"}


async def test_told_once_one_complaint_is_all_that_is_said(tmp_path: Path) -> None:
    plan = plan_of("joined", "opd", terms=replace(QUICK, mode="once"))
    async with FakeWorld(per_version=1, learned_at=1) as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    report = _report(tmp_path / "state.jsonl", plan)
    joined, opd = report["runs"]  # type: ignore[misc]
    assert (joined["complaints"], opd["complaints"]) == (1, 1)
    assert joined["told"]["next_reply_passed"]
    assert joined["told"]["complaint"] in USER.complaints
    assert (joined["first_request"]["passed"], opd["first_request"]) == (60, None)
    assert (joined["held_out"]["passed"], joined["held_out"]["version"]) == (60, 1)
    assert (joined["preferences"], opd["preferences"]) == ({"learned": 1}, {})
    assert report["frozen_base"][USER.name]["passed"] == 0  # type: ignore[index]
    told, *_ = report["claims"]  # type: ignore[misc]
    assert (told["claim"].split(",")[0], told["holds"], told["median_rate"]) == ("joined", True, 1.0)
    talk = [body for body in world.minds["joined-1"].requests if "@" not in body["model"]]
    assert [len(body["messages"]) for body in talk] == [1, 3]


async def test_told_once_somebody_who_is_content_says_nothing(tmp_path: Path) -> None:
    plan = plan_of("opd", terms=replace(QUICK, mode="once"))
    async with FakeWorld(learned_at=0) as world:
        assert await _done(world, tmp_path / "state.jsonl", plan)
    (run,) = _report(tmp_path / "state.jsonl", plan)["runs"]  # type: ignore[misc]
    assert (run["complaints"], run["told"]["complained"], run["idled"]) == (0, False, None)


async def test_told_once_an_interrupted_wait_begins_anew(tmp_path: Path) -> None:
    terms = Terms(mode="once", idle_minutes=30, settles_s=0)
    plan = plan_of("opd", terms=terms)
    path = tmp_path / "state.jsonl"
    async with FakeWorld() as world:
        waits = asyncio.create_task(_done(world, path, plan))
        while '"told"' not in (path.read_text() if path.exists() else ""):
            await asyncio.sleep(0.05)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        again = asyncio.create_task(_done(world, path, plan))
        while path.read_text().count('"told"') < 2:
            await asyncio.sleep(0.05)
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again
    with Journal(path, code="abc", machine="2 cores") as journal:
        tenants = [line["tenant"] for line in lines_of(journal, OPD, "begun")]
    assert len(set(tenants)) == 2
