"""Replies that loop or that the model itself thought all but impossible:
nothing is learned from them but that."""

from collections import Counter
from collections.abc import Sequence

from apps.judging.reasons import Reason

RUN_TOKENS = 16  # one token so often in a row
LOOP_PERIOD = 48  # longest cycle looked for, tokens
LOOP_REPEATS = 4
LOOP_SHARE = 0.5  # of the reply that the cycle fills
COMMON_SHARE = 0.5  # of the reply that is one and the same token
COMMON_TOKENS = 24  # shorter replies say little about shares
RARE_NATS = -6.0  # a token this unlikely (1 in 400) is rare where it was sampled
RARE_RUN = 8  # rare tokens in a row: no text, at any temperature that is served
RARE_SHARE = 0.1  # of the reply that is one token, rare on average
RARE_TIMES = 6


def why_degenerate(ids: Sequence[int], logprobs: Sequence[float] = ()) -> str:
    """Return what is degenerate about a reply's tokens, or "".

    `logprobs`: one for each, nats, or none at all.
    """
    longest = _longest_run(ids)
    if longest >= RUN_TOKENS:
        return Reason.DEGENERATE.say(f"one token {longest} times in a row")
    if len(ids) >= COMMON_TOKENS:
        _, count = Counter(ids).most_common(1)[0]
        if count >= COMMON_SHARE * len(ids):
            return Reason.DEGENERATE.say(f"one token is {count} of {len(ids)}")
    for period in range(2, min(LOOP_PERIOD, len(ids) // LOOP_REPEATS) + 1):
        looping = _looping(ids, period)
        if looping >= period * LOOP_REPEATS and looping >= LOOP_SHARE * len(ids):
            return Reason.DEGENERATE.say(f"{period} tokens repeated through {looping} of {len(ids)}")
    return _why_rare(ids, logprobs) if logprobs else ""


def _why_rare(ids: Sequence[int], logprobs: Sequence[float]) -> str:
    run = longest = 0
    for logprob in logprobs:
        run = run + 1 if logprob <= RARE_NATS else 0
        longest = max(longest, run)
    if longest >= RARE_RUN:
        return Reason.DEGENERATE.say(f"{longest} rare tokens in a row")
    for token, count in Counter(ids).most_common():
        if count < max(RARE_TIMES, RARE_SHARE * len(ids)):
            break
        mean = sum(logprob for id_, logprob in zip(ids, logprobs, strict=True) if id_ == token) / count
        if mean <= RARE_NATS:
            return Reason.DEGENERATE.say(f"one rare token {count} times in {len(ids)}")
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
