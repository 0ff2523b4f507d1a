"""A steady trickle of small requests beside everything else:
it sees whether a swap fails or delays anybody."""

import asyncio
import contextlib
import statistics
import uuid
from collections.abc import Sequence

from apps.evaluation.chat import Chat, Reply, RequestFailed

EVERY_S = 2.0
AROUND_S = 2.0
"""A request that started this close to a swap counts as during it."""
_MAX_TOKENS = 4


async def trickle(chat: Chat, *, policy: str) -> None:
    """Ask the live version for a few tokens every two seconds, until cancelled.

    Failures are in the chat's log.
    """
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(_one(chat, policy))
            await asyncio.sleep(EVERY_S)


async def _one(chat: Chat, policy: str) -> None:
    with contextlib.suppress(RequestFailed):
        await chat.ask(
            [{"role": "user", "content": "Are you there?"}],
            model=policy,
            purpose="trickle",
            max_tokens=_MAX_TOKENS,
            temperature=0.7,
            session=f"trickle-{uuid.uuid4().hex[:16]}",
        )


def first_token_times(replies: Sequence[Reply], *, swaps: Sequence[float]) -> dict[str, dict[str, float]]:
    """Return count, median, 95th percentile and maximum of the time to first token,
    in ms, near swaps and not.

    `swaps` is the Unix times at which the live pointer moved.
    """
    near: list[float] = []
    quiet: list[float] = []
    for reply in replies:
        around = any(-AROUND_S <= reply.started - swap <= AROUND_S for swap in swaps)
        (near if around else quiet).append(reply.first_token_s * 1000)
    return {"around_swaps": _summary(near), "otherwise": _summary(quiet)}


def _summary(values: list[float]) -> dict[str, float]:
    if not values:
        return {"n": 0}
    ordered = sorted(values)
    return {
        "n": len(ordered),
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
        "max": round(ordered[-1], 1),
    }
