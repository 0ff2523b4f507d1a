"""Tell it once: one complaint, then only the clock."""

import asyncio
import itertools
import time
from typing import Any

from apps.evaluation.personalization.idle import leave_alone
from apps.evaluation.personalization.run import Run
from apps.evaluation.users import plan_sessions

QUESTIONS = 10
"""A user who is content with so many first replies in a row has nothing to complain of."""


async def run_once(run: Run) -> None:
    """Complain once, ask again when it was judged, wait, and measure what the weights hold by themselves.

    Everything between the complaint and the end of the wait belongs together: interrupted there, a run begins
    anew. What was live at that end is what is measured, however long that takes and however often it is
    interrupted.
    """
    told = await run.step("told", lambda: _tell(run))
    if told["complained"]:
        if run.method.memory:
            await run.step("first_request", lambda: _first_request(run))
        await run.step("idled", lambda: leave_alone(run))
    # gone on with after the idle minutes, a run was switched on again when it was opened
    await run.platform.rest(run.subject)
    await run.step("held_out", lambda: _exam(run))
    await run.step("ended", lambda: _outcome(run))


async def _tell(run: Run) -> dict[str, Any]:
    """Ask until a first reply is not right, complain, and read the reply to that."""
    failed = 0
    plan = plan_sessions(run.user, seed=run.key.seed)
    for asked, lines in enumerate(itertools.islice(plan, QUESTIONS), start=1):
        began = time.monotonic()
        talk, again = await run.talk(lines, turns=2)
        failed += again
        if not talk.passed:
            # the complaint went out with the second request, whose reply took the rest of the time
            since = talk.answers[1].reply.seconds
            await asyncio.sleep(max(0.0, run.terms.settles_s - since))
            return {
                "complained": True,
                "asked": asked,
                "question": lines.question.text,
                "complaint": lines.complaints[0],
                "next_reply": talk.answers[1].reply.text.strip()[:400],
                "next_reply_passed": talk.answers[1].verdict.passed,
                "seconds": round(time.monotonic() - began, 2),
                "failed_requests": failed,
            }
    return {"complained": False, "asked": QUESTIONS, "failed_requests": failed}


async def _first_request(run: Run) -> dict[str, Any]:
    """Measure what a first request gets now, with what is remembered in its prompt."""
    return await run.exam(await run.live_version(), memory=True)


async def _exam(run: Run) -> dict[str, Any]:
    idled = run.past.steps.get("idled")
    return await run.exam(await run.live_version() if idled is None else idled["version"])


async def _outcome(run: Run) -> dict[str, Any]:
    told, idled = run.past.steps["told"], run.past.steps.get("idled", {})
    return {
        "complaints": int(told["complained"]),
        "version": run.past.steps["held_out"]["version"],
        "preferences": idled.get("preferences", {}),
    }
