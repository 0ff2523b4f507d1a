"""The idle minutes: nobody talks, and what was said is taught."""

import asyncio
import time
from typing import Any

from apps.evaluation.personalization.run import Run

LOOK_EVERY_S = 5.0
NOTED_EVERY_S = 60.0


async def leave_alone(run: Run) -> dict[str, Any]:
    """Leave the platform alone for the idle minutes, and note what is so at their end: no second later.

    Notes when which version was live, as `/v1/models` says, and what the platform did meanwhile.
    """
    began = time.monotonic()
    seen = [[0.0, await run.live_version()]]
    noted = began
    while (left := run.terms.idle_minutes * 60 - (time.monotonic() - began)) > 0:
        await asyncio.sleep(min(LOOK_EVERY_S, left))
        version = await run.live_version()
        if version != seen[-1][1]:
            seen.append([round(time.monotonic() - began, 1), version])
            run.progress.note(run.key, f"version {version} is live after {seen[-1][0]:.0f} s")
        if time.monotonic() - noted >= NOTED_EVERY_S:
            noted = time.monotonic()
            run.progress.note(run.key, f"waits, {max(0.0, left) / 60:.0f} min to go")
    return {
        "minutes": run.terms.idle_minutes,
        "live": seen,
        "version": await run.live_version(),
        "preferences": await run.preferences() if run.method.memory else {},
        "account": await run.platform.account(run.subject),
    }
