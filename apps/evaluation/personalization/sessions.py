"""A run to convergence: session after session, until three first replies in a row are right."""

import asyncio
import itertools
import time
from collections.abc import Mapping
from typing import Any

from apps.evaluation.personalization.idle import leave_alone
from apps.evaluation.personalization.journal import Line
from apps.evaluation.personalization.run import PLACES, Run
from apps.evaluation.users import plan_sessions

LOOK_EVERY_S = 2.0


def converged_at(sessions: Mapping[int, Line], *, in_a_row: int) -> int | None:
    """Return the number of the session whose first reply was the last of `in_a_row` right ones, or None.

    Counted from the first session on; a session that is missing ends the count.
    """
    row = 0
    for number in itertools.count(1):
        if number not in sessions:
            return None
        row = row + 1 if sessions[number]["passed"] else 0
        if row == in_a_row:
            return number
    return None


async def run_sessions(run: Run) -> None:
    """Talk until the user is content or the cap is reached, leave what learns alone,
    then measure what is live.

    Goes on where the journal ends; interrupted in the idle minutes, they begin anew. Whoever is content soon
    has said so little that nothing of it is in the weights yet: what a method makes of it while nobody waits
    is part of it, and every one that trains has the same minutes.
    """
    terms, past = run.terms, run.past
    abreast = PLACES if run.method.still else 1
    while converged_at(past.sessions, in_a_row=terms.in_a_row) is None:
        missing = [number for number in range(1, terms.cap + 1) if number not in past.sessions]
        if not missing:
            break
        run.check_time()
        before = await run.live_version()
        await asyncio.gather(*(_session(run, number) for number in missing[:abreast]))
        if not run.method.still and converged_at(past.sessions, in_a_row=terms.in_a_row) is None:
            await _stay_away(run, version=before)
    if run.method.trains:
        await run.step("idled", lambda: leave_alone(run))
    # gone on with after the idle minutes, a run was switched on again when it was opened
    await run.platform.rest(run.subject)
    await run.step("held_out", lambda: _held_out(run))
    if run.method.memory:
        await run.step("as_served", lambda: _as_served(run))
    await run.step("ended", lambda: _outcome(run))


async def _session(run: Run, number: int) -> None:
    run.write("session-begun", session=number)
    lines = next(itertools.islice(plan_sessions(run.user, seed=run.key.seed), number - 1, None))
    began = time.monotonic()
    talk, failed = await run.talk(lines, turns=run.terms.turns)
    first = talk.answers[0]
    line = run.write(
        "session",
        session=number,
        passed=talk.passed,
        satisfied=talk.satisfied,
        complaints=talk.complaints,
        on_topic=first.on_topic,
        version=first.reply.version,
        reasons=[answer.verdict.reason for answer in talk.answers],
        question=lines.question.text,
        first_reply=first.reply.text.strip()[:400],
        seconds=round(time.monotonic() - began, 2),
        failed_requests=failed,
    )
    run.past.sessions[number] = line
    run.progress.session(run.key, line)


async def _stay_away(run: Run, *, version: int) -> None:
    """Leave the platform alone: at least the idle seconds,
    and where it trains until a newer version answers, within limits."""
    began = time.monotonic()
    await asyncio.sleep(run.terms.idle_s)
    if not run.method.trains:
        return
    while time.monotonic() - began < run.terms.patience_s:
        if await run.live_version() != version:
            return
        await asyncio.sleep(LOOK_EVERY_S)


async def _held_out(run: Run) -> dict[str, Any]:
    """Measure what was live when the idle minutes were over: what was still under way then comes too late."""
    idled = run.past.steps.get("idled")
    return await run.exam(await run.live_version() if idled is None else idled["version"])


async def _as_served(run: Run) -> dict[str, Any]:
    """Measure what a person gets now that nothing changes any more:
    the version that is live, told what its prompts are told."""
    return await run.exam(await run.live_version(), memory=True)


async def _outcome(run: Run) -> dict[str, Any]:
    past, terms = run.past, run.terms
    at = converged_at(past.sessions, in_a_row=terms.in_a_row)
    count = terms.cap if at is None else at
    # those held side by side beyond the last one that counts never were, for the figures
    counted = [past.sessions[number] for number in range(1, count + 1)]
    return {
        "converged": at is not None,
        "sessions": count,
        "complaints": sum(line["complaints"] for line in counted),
        "passed": [bool(line["passed"]) for line in counted],
        "version": run.past.steps["held_out"]["version"],
        "preferences": await _preferences(run),
        "interrupted_sessions": past.interrupted,
        "failed_requests": sum(line["failed_requests"] for line in counted),
    }


async def _preferences(run: Run) -> dict[str, int]:
    """Return what was told and what was not, at the time of the version that was measured."""
    idled = run.past.steps.get("idled")
    if idled is not None:
        found: dict[str, int] = idled["preferences"]
        return found
    return await run.preferences() if run.method.memory else {}
