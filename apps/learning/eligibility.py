"""What a turn may teach: everything, its hints only, or nothing, each with the reason that is shown."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.conversations.models import Turn
from apps.judging.eligibility import why_not_judged
from apps.judging.reasons import SEPARATOR, Reason
from apps.judging.selectors import Verdict
from apps.learning.degenerate import why_degenerate
from apps.learning.shadow.questions import asks_to_choose_by

# name -> values that leave the distribution alone
_HARMLESS: Mapping[str, tuple[object, ...]] = {
    "top_p": (1, None),
    "top_k": (None, 0, -1, 1 << 30),
    "min_p": (None, 0),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "min_new_tokens": (None, 0),
    "min_tokens": (None, 0),
    "logit_bias": (None, {}),
    "json_schema": (None,),
    "regex": (None,),
    "ebnf": (None,),
    "structural_tag": (None,),
    "response_format": (None, {"type": "text"}),
}
DISTILLED_ONLY = "distilled only"
_HIGHEST_LOGPROB = 1e-3  # float error above 0
_LOWEST_LOGPROB = -1e4


@dataclass(frozen=True, slots=True)
class Worth:
    """What a turn gives to its policy.

    `refused` is why it gives nothing; `note` what was left out, and why.
    """

    reward: float | None = None
    outcome: float | None = None
    hints: tuple[str, ...] = ()
    refused: str = ""
    note: str = ""


def sampling_temperature(sampling: Mapping[str, Any], default: float) -> float:
    """Return the temperature a turn was sampled with; 0 is greedy. `default` is its policy's."""
    value = sampling.get("temperature")
    return float(default if value is None else value)


def distorted_by(sampling: Mapping[str, Any]) -> list[str]:
    """Return the sampling parameters that shaped the distribution beyond the temperature."""
    return sorted(
        name
        for name, harmless in _HARMLESS.items()
        if name in sampling and not any(sampling[name] == value for value in harmless)
    )


def why_misaligned(output_ids: Sequence[int], logprobs: Sequence[float], prompt_ids: Sequence[int]) -> str:
    """Return how a turn's tokens and log-probabilities do not fit each other, or ""."""
    if not prompt_ids:
        return Reason.MISALIGNED.say("no prompt tokens")
    if len(logprobs) != len(output_ids):
        return Reason.MISALIGNED.say(f"{len(logprobs)} log-probabilities for {len(output_ids)} tokens")
    if not all(math.isfinite(p) and _LOWEST_LOGPROB <= p <= _HIGHEST_LOGPROB for p in logprobs):
        return Reason.MISALIGNED.say("a log-probability is none")
    return ""


def worth(
    turn: Turn, verdict: Verdict | None, *, outcome: float | None = None, found: Sequence[str] = ()
) -> Worth:
    """Return what a finished turn (with its session, policy and tenant) is worth, given what was said of it.

    A reward needs a known sampling distribution and a whole reply; hints can teach on any reply's tokens.
    A neutral verdict is no reward: it says nothing about the reply. `outcome` is how the attempt ended that
    the turn was part of, `found` the kinds of personal data that its policy does not let into training.
    """
    refused = _why_never(turn)
    if not refused and found:
        refused = Reason.PERSONAL_DATA.say(", ".join(found))
    if refused:
        return Worth(refused=refused)
    if verdict is None and outcome is None:
        return Worth(refused=(Reason.EDITED if turn.reply_edited else Reason.NO_NEXT_STATE).say())
    reward = float(verdict.reward) if verdict is not None and verdict.reward else None
    hints = verdict.hints if verdict is not None else ()
    if reward is None and outcome is None and not hints:
        return Worth(refused=Reason.NO_SIGNAL.say(verdict.reason if verdict is not None else ""))
    note = _why_no_ratio(turn)
    if note and not hints:
        return Worth(refused=note)
    if note:
        return Worth(hints=hints, note=f"{note}{SEPARATOR}{DISTILLED_ONLY}")
    return Worth(reward=reward, outcome=outcome, hints=hints)


def _why_never(turn: Turn) -> str:
    never = why_not_judged(turn)
    if never is not None:
        return never.say()
    if asks_to_choose_by(turn.messages):
        return Reason.CHOOSING.say()
    if not (turn.tenant.training_enabled and turn.policy.training_enabled):
        return Reason.OPTED_OUT.say()
    if not turn.output_ids:
        return Reason.EMPTY.say()
    return why_misaligned(turn.output_ids, turn.output_logprobs, turn.prompt_ids) or why_degenerate(
        turn.output_ids, turn.output_logprobs
    )


def _why_no_ratio(turn: Turn) -> str:
    """Return why a turn's reward cannot be used, or ""."""
    if turn.finish_reason == "length":
        return Reason.TRUNCATED.say()
    if sampling_temperature(turn.sampling, turn.policy.temperature) == 0.0:
        return Reason.GREEDY.say()
    distorted = distorted_by(turn.sampling)
    return Reason.DISTORTED.say(f"sampled with {', '.join(distorted)}") if distorted else ""
