"""Do what a plan says: the references first, then run after run, a few side by side if asked to."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from apps.evaluation.personalization.journal import Journal, Past
from apps.evaluation.personalization.methods import METHODS
from apps.evaluation.personalization.once import run_once
from apps.evaluation.personalization.plan import REFERENCE, TEACHER_TIMES, Plan, RunKey, reference_of
from apps.evaluation.personalization.references import keep, known_elsewhere, lines_of
from apps.evaluation.personalization.run import FROZEN, OutOfTime, Platform, Progress, Run
from apps.evaluation.personalization.sessions import run_sessions
from apps.evaluation.users import load_user


async def carry_out(
    plan: Plan,
    *,
    journal: Journal,
    platform: Platform,
    progress: Progress,
    parallel: int = 1,
    seconds: float = float("inf"),
    references: Path | None = None,
) -> bool:
    """Do what the journal does not have yet; return whether all of the plan is done,
    or the time was over before.

    What the bare base does is taken from the file `references` where it is there, and put there where it is
    not.

    Whatever else goes wrong ends the benchmark with its error; what was found out until then is in the
    journal.
    """
    past = journal.past(plan)
    if references is not None:
        for line in known_elsewhere(references, plan, past):
            journal.copy(line)
        past = journal.past(plan)
    until = time.monotonic() + seconds
    waiting = [key for key in [*plan.references(), *plan.runs()] if not past[key].ended]
    waiting.reverse()  # taken from the end
    ran_out = False

    async def work() -> None:
        nonlocal ran_out
        while waiting and not ran_out:
            key = waiting.pop()
            try:
                await _one(
                    plan, key, past, journal=journal, platform=platform, progress=progress, until=until
                )
                if key.method == REFERENCE and references is not None and plan.model:
                    keep(references, lines_of(past[key]))
            except OutOfTime:
                ran_out = True

    async with asyncio.TaskGroup() as group:
        for _ in range(parallel):
            group.create_task(work())
    return not ran_out


async def _one(
    plan: Plan,
    key: RunKey,
    past: dict[RunKey, Past],
    *,
    journal: Journal,
    platform: Platform,
    progress: Progress,
    until: float,
) -> None:
    if time.monotonic() >= until:
        raise OutOfTime(str(key))
    known, fingerprint = past[key], plan.fingerprint(key)
    method = METHODS.get(key.method, FROZEN)
    if (
        plan.terms.mode == "once"
        and known.steps.get("told", {}).get("complained")
        and "idled" not in known.steps
    ):
        known = past[key] = Past()
    subject = await platform.open(method=method, tenant=known.tenant)
    if subject is None:  # its tenant is gone: another home, or erased
        known = past[key] = Past()
        subject = await platform.open(method=method, tenant="")
    if subject is None:
        raise RuntimeError(f"no policy could be made for {key}")
    try:
        if known.tenant != subject.tenant:
            journal.write("begun", key, fingerprint, tenant=subject.tenant)
            known.tenant = subject.tenant
        run = Run(
            key=key,
            method=method,
            user=load_user(key.user),
            terms=plan.terms,
            fingerprint=fingerprint,
            journal=journal,
            past=known,
            subject=subject,
            platform=platform,
            progress=progress,
            until=until,
            base=past[reference_of(key.user)].steps.get("base"),
        )
        progress.begun(key, known)
        await _course_of(run)
    finally:
        # also when it is only interrupted: nobody learns while nobody talks
        await platform.rest(subject)
        await platform.close(subject)


async def _course_of(run: Run) -> None:
    if run.key.method == REFERENCE:
        await _reference(run)
    elif run.terms.mode == "once":
        await run_once(run)
    else:
        await run_sessions(run)


async def _reference(run: Run) -> None:
    """Measure the bare base, without and with the hint."""
    await run.step("base", lambda: run.exam(0))
    await run.step("hinted", lambda: run.exam(0, hint=run.user.hint, times=TEACHER_TIMES))
    await run.step("ended", _nothing)


async def _nothing() -> Mapping[str, object]:
    return {}
