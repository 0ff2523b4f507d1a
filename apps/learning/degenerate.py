"""Replies that loop: nothing is learned from them but the loop."""

from collections import Counter
from collections.abc import Sequence

RUN_TOKENS = 16  # one token so often in a row
LOOP_PERIOD = 48  # longest cycle looked for, tokens
LOOP_REPEATS = 4
LOOP_SHARE = 0.5  # of the reply that the cycle fills
COMMON_SHARE = 0.5  # of the reply that is one and the same token
COMMON_TOKENS = 24  # shorter replies say little about shares


def why_degenerate(ids: Sequence[int]) -> str:
    """Return what is degenerate about a reply's tokens, or ""."""
    longest = _longest_run(ids)
    if longest >= RUN_TOKENS:
        return f"degenerate: one token {longest} times in a row"
    if len(ids) >= COMMON_TOKENS:
        _, count = Counter(ids).most_common(1)[0]
        if count >= COMMON_SHARE * len(ids):
            return f"degenerate: one token is {count} of {len(ids)}"
    for period in range(2, min(LOOP_PERIOD, len(ids) // LOOP_REPEATS) + 1):
        looping = _looping(ids, period)
        if looping >= period * LOOP_REPEATS and looping >= LOOP_SHARE * len(ids):
            return f"degenerate: {period} tokens repeated through {looping} of {len(ids)}"
    return ""


def _longest_run(ids: Sequence[int]) -> int:
    longest = run = 0
    previous: int | None = None
    for token in ids:
        run = run + 1 if token == previous else 1
        previous = token
        longest = max(longest, run)
    return longest


def _looping(ids: Sequence[int], period: int) -> int:
    """Return the length of the longest stretch in which every token equals the one `period` before it."""
    longest = run = 0
    for index in range(period, len(ids)):
        run = run + 1 if ids[index] == ids[index - period] else 0
        longest = max(longest, run)
    return longest + period if longest else 0
