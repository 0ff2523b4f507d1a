"""How long what is left will take: from what sessions and measurements have cost so far, else from the embedded default."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from apps.evaluation.personalization.journal import Past
from apps.evaluation.personalization.methods import METHODS
from apps.evaluation.personalization.plan import REFERENCE, Plan, RunKey
from apps.evaluation.personalization.run import PLACES

# the embedded model on two cores, alone: a reply of a session, a reply with eight at a time, and sessions to convergence
REPLY_S = 6.0
REPLY_OF_EIGHT_S = 1.8
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
        seconds += exams * _exam_s(plan, past)
        at_most += exams * _exam_s(plan, past)
        requests += exams * plan.terms.questions * plan.terms.replies
        if key.method == REFERENCE:
            continue
        if plan.terms.mode == "once":
            idle = plan.terms.idle_minutes * 60 if "idled" not in past[key].steps else 0.0
            seconds, at_most, requests = seconds + idle + 20, at_most + idle + 20, requests + 2
            continue
        each = _session_s(plan, key, past)
        done = len(past[key].sessions)
        seconds += max(0, _sessions(plan, key, past) - done) * each
        at_most += max(0, plan.terms.cap - done) * each
        requests += max(0, _sessions(plan, key, past) - done) * (plan.terms.turns + 1) // 2
    return Estimate(seconds, at_most, requests)


def _exams_left(plan: Plan, key: RunKey, past: Past) -> int:
    method = METHODS.get(key.method)
    names = ["base", "hinted"] if method is None else ["held_out"]
    if method is not None and method.memory:
        names += ["as_served", *(["first_request"] if plan.terms.mode == "once" else [])]
    return sum(name not in past.steps for name in names)


def _exam_s(plan: Plan, past: Mapping[RunKey, Past]) -> float:
    known = [
        line["seconds"]
        for one in past.values()
        for name, line in one.steps.items()
        if name in ("base", "hinted", "held_out", "as_served", "first_request")
    ]
    return fmean(known) if known else plan.terms.questions * plan.terms.replies * REPLY_OF_EIGHT_S


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
            else plan.terms.turns * REPLY_OF_EIGHT_S * PLACES
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
