"""How long what is left will take: from what sessions and measurements have cost so far,
else from the embedded default."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from apps.evaluation.personalization.journal import Past
from apps.evaluation.personalization.methods import METHODS
from apps.evaluation.personalization.plan import REFERENCE, TEACHER_TIMES, Plan, RunKey
from apps.evaluation.personalization.run import PLACES
from apps.evaluation.users import MAX_TOKENS, load_user

_EXAMS = ("base", "hinted", "held_out", "as_served", "first_request")

# the embedded model on two cores that have other things to do as well: a reply of a session, a token with
# eight replies at a time, how much of what a reply may have is written, telling once, and sessions to
# convergence
REPLY_S = 8.0
TOKEN_OF_EIGHT_S = 1 / 25
WRITTEN = 0.8
TELL_S = 60.0
SESSIONS = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds that are left: as things go, and if no run ever converges; and the requests of the former."""

    seconds: float
    at_most_s: float
    requests: int


def estimate(plan: Plan, past: Mapping[RunKey, Past]) -> Estimate:
    """Return what is left of a plan, one run at a time: what runs side by side save is not assumed."""
    seconds = at_most = 0.0
    requests = 0
    for key in [*plan.references(), *plan.runs()]:
        if past[key].ended:
            continue
        exams = _exams_left(plan, key, past[key])
        seconds += exams * _exam_s(plan, key, past)
        at_most += exams * _exam_s(plan, key, past)
        requests += exams * plan.terms.questions * plan.terms.replies
        if key.method == REFERENCE:
            continue
        if plan.terms.mode == "once":
            if "idled" not in past[key].steps:
                telling = plan.terms.idle_minutes * 60 + TELL_S
                seconds, at_most, requests = seconds + telling, at_most + telling, requests + 2
            continue
        if METHODS[key.method].trains and "idled" not in past[key].steps:
            seconds, at_most = seconds + plan.terms.idle_minutes * 60, at_most + plan.terms.idle_minutes * 60
        each = _session_s(plan, key, past)
        done = len(past[key].sessions)
        seconds += max(0, _sessions(plan, key, past) - done) * each
        at_most += max(0, plan.terms.cap - done) * each
        requests += max(0, _sessions(plan, key, past) - done) * (plan.terms.turns + 1) // 2
    return Estimate(seconds, at_most, requests)


def _exams_left(plan: Plan, key: RunKey, past: Past) -> int:
    method = METHODS.get(key.method)
    once = plan.terms.mode == "once"
    if method is None:
        return ("base" not in past.steps) + TEACHER_TIMES * ("hinted" not in past.steps)
    if once and past.steps.get("told", {}).get("complained", True):
        # interrupted before the end of its wait, a run begins anew
        names = ["held_out"] if "idled" in past.steps or not method.memory else ["first_request", "held_out"]
        return sum(name == "first_request" or name not in past.steps for name in names)
    # where nothing trains, the bare base is what is measured, and it was measured already
    names = ["held_out"] if method.trains and not once else []
    names += ["as_served"] if method.memory and not once else []
    return sum(name not in past.steps for name in names)


def _exam_s(plan: Plan, key: RunKey, past: Mapping[RunKey, Past]) -> float:
    """Return what an examination costs: the replies of the user's length,
    each token as long as tokens took so far."""
    known = [
        (line["seconds"], line["of"] * load_user(other.user).reply_tokens)
        for other, one in past.items()
        for name, line in one.steps.items()
        if name in _EXAMS and line.get("seconds")
    ]
    token_s = (
        sum(took for took, _ in known) / sum(most for _, most in known)
        if known
        else WRITTEN * TOKEN_OF_EIGHT_S
    )
    return plan.terms.questions * plan.terms.replies * load_user(key.user).reply_tokens * token_s


def _session_s(plan: Plan, key: RunKey, past: Mapping[RunKey, Past]) -> float:
    """Return what a session costs, the time after it included."""
    method = METHODS[key.method]
    lines: list[Mapping[str, Any]] = [
        line for other, one in past.items() if other.method == key.method for line in one.sessions.values()
    ]
    if method.still:
        talk = (
            fmean(line["seconds"] for line in lines)
            if lines
            else plan.terms.turns * MAX_TOKENS * WRITTEN * TOKEN_OF_EIGHT_S * PLACES / 2
        )
        return talk / PLACES
    talk = fmean(line["seconds"] for line in lines) if lines else plan.terms.turns / 2 * REPLY_S
    away = plan.terms.patience_s / 2 if method.trains else 0.0
    return talk + max(plan.terms.idle_s, away)


def _sessions(plan: Plan, key: RunKey, past: Mapping[RunKey, Past]) -> int:
    if METHODS[key.method].still:
        return plan.terms.cap
    known = [
        one.steps["ended"]["sessions"]
        for other, one in past.items()
        if other.method == key.method and one.ended
    ]
    return min(plan.terms.cap, round(median(known)) if known else SESSIONS)
