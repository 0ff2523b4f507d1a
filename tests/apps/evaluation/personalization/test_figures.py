"""The statistics and what is said of them, with values worked out by hand."""

from typing import Any

import pytest

from apps.evaluation.guards import compare
from apps.evaluation.intervals import Interval, bootstrap, wilson
from apps.evaluation.personalization.claims import claims_of
from apps.evaluation.personalization.estimate import estimate
from apps.evaluation.personalization.journal import Past
from apps.evaluation.personalization.report import pass_rate_by_session, rate_of
from apps.evaluation.personalization.sessions import converged_at
from tests.apps.evaluation.personalization.fake_world import plan_of


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (36, 60, 0.4737, 0.7143),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson(passed: int, of: int, low: float, high: float) -> None:
    found = wilson(passed, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_bootstrap_draws_whole_clusters() -> None:
    assert bootstrap([[1.0, 1.0], [1.0]]) == Interval(1.0, 1.0)
    assert bootstrap([]) == Interval(0.0, 1.0)
    alike = bootstrap([[1.0] * 3] * 10 + [[0.0] * 3] * 10)
    apart = bootstrap([[1.0]] * 30 + [[0.0]] * 30)
    assert alike.low < apart.low < 0.5 < apart.high < alike.high
    assert bootstrap([[1.0], [0.0]], seed=3) == bootstrap([[1.0], [0.0]], seed=3)


def _sessions(*passed: bool) -> dict[int, dict[str, object]]:
    return {number: {"passed": one} for number, one in enumerate(passed, start=1)}


@pytest.mark.parametrize(
    ("passed", "at"),
    [
        ((True, True, True), 3),
        ((True, True, False, True, True, True, True), 6),
        ((True, True), None),
        ((False,) * 9, None),
        ((), None),
    ],
)
def test_converged_at(passed: tuple[bool, ...], at: int | None) -> None:
    assert converged_at(_sessions(*passed), in_a_row=3) == at


def test_a_missing_session_ends_the_count() -> None:
    held = _sessions(True, True, True)
    del held[2]
    assert converged_at(held, in_a_row=3) is None


def test_pass_rate_by_session_counts_the_content_on() -> None:
    rows = [[False, True, True, True], [False, False, False, False, False, True]]
    assert pass_rate_by_session(rows, cap=6, in_a_row=3) == [0.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert pass_rate_by_session([], cap=6, in_a_row=3) == []


def _measured(*by_question: int, of: int = 3, **more: float) -> dict[str, Any]:
    passed, every = sum(by_question), of * len(by_question)
    whole = {
        "on_topic": every,
        "not_empty": every,
        "no_loop": every,
        "mean_words": 10.0,
        "failed_requests": 0,
    }
    return {
        "passed": passed,
        "of": every,
        "by_question": list(by_question),
        "passed_on_topic": passed,
        **whole,
        **more,
    }


def test_rates_are_pooled_and_the_median_is_of_the_seeds() -> None:
    found = rate_of([_measured(3, 0), _measured(3, 3), _measured(0, 1)])
    assert (found["passed"], found["of"], found["rate"], found["median_of_seeds"]) == (10, 18, 0.5556, 3)
    assert (
        found["bootstrap"][0]
        <= found["wilson"][0]
        <= found["rate"]
        <= found["wilson"][1]
        <= found["bootstrap"][1]
    )
    nothing = rate_of([])
    assert (nothing["of"], nothing["rate"], nothing["wilson"]) == (0, None, [0.0, 1.0])


def test_guards_are_compared_with_the_frozen_base() -> None:
    base = _measured(*[0] * 20, on_topic=54, mean_words=80.0)
    found = compare(_measured(*[3] * 20, on_topic=48, mean_words=20.0), base)
    assert found["on_topic"] == {"rate": 0.8, "base": 0.9, "holds": True}
    assert found["length_ratio"] == 0.25
    assert compare(_measured(*[3] * 20, on_topic=47), base)["on_topic"]["holds"] is False
    assert compare(_measured(*[3] * 20, no_loop=30), base)["no_loop"] == {
        "rate": 0.5,
        "base": 1.0,
        "holds": False,
    }


def _once(gains: dict[str, int]) -> dict[str, Any]:
    """A report of told once: every user's base passes 6 of 60, their runs that and the gain."""
    runs = [
        {
            "method": "joined",
            "user": user,
            "seed": 1,
            "held_out": {"passed": 6 + gain, "of": 60},
            "first_request": {"passed": 30, "of": 60},
        }
        for user, gain in gains.items()
    ]
    references = [
        {"user": user, "base": {"passed": 6, "of": 60}, "hinted": {"passed": 33, "of": 60}} for user in gains
    ]
    first = {"rate": 0.5, "bootstrap": [0.4, 0.6]}
    return {
        "mode": "once",
        "users": list(gains),
        "runs": runs,
        "references": references,
        "methods": {"joined": {"first_request": first}},
    }


def test_claims_of_told_once() -> None:
    gains = {"one-short-sentence": 30, "in-french": 15, "numbered-list": 20, "in-short": 15, "my-friend": 3}
    held = claims_of(_once(gains))
    assert [claim["holds"] for claim in held] == [True, True, True]
    assert held[0]["median_rate"] == 0.6
    assert held[2]["hinted_teacher"] == 0.55
    missed = claims_of(_once({**gains, "one-short-sentence": 29, "in-short": 14}))
    assert [claim["holds"] for claim in missed] == [False, False, True]
    early = claims_of(_once({"one-short-sentence": 30, "in-french": 15}))
    assert [claim["holds"] for claim in early] == [True, None, True]


def _compared(joined: float, complaints: int, *, missing: list[str], told: str = "learned") -> dict[str, Any]:
    held = {"on_topic": {"holds": True}, "length_ratio": 0.5, "failed_requests": 0}

    def method(sessions: float, complaints: int) -> dict[str, Any]:
        figures = {"sessions": {"mean": sessions}, "held_out": {"rate": 0.54}}
        return {"runs": 1, "complaints": complaints, "guards": held, **figures}

    return {
        "mode": "sessions",
        "missing": missing,
        "methods": {"joined": method(joined, complaints), "memory": method(6, 9), "combined": method(8, 40)},
        "runs": [{"method": "joined", "user": "in-french", "seed": 1, "preferences": {told: 1}}],
        "references": [{"user": "in-french", "hinted": {"passed": 36, "of": 60}}],
    }


@pytest.mark.parametrize(
    ("joined", "complaints", "missing", "holds"),
    [
        (6, 8, [], [True, True, True, True, True]),
        (7, 9, [], [False, False, True, True, True]),
        (6, 8, ["x"], [None, None, None, None, None]),
    ],
)
def test_claims_of_joined(
    joined: float, complaints: int, missing: list[str], holds: list[bool | None]
) -> None:
    assert [claim["holds"] for claim in claims_of(_compared(joined, complaints, missing=missing))] == holds


def test_a_preference_that_is_still_told_is_not_learned() -> None:
    claims = claims_of(_compared(6, 8, missing=[], told="active"))
    assert [claim["holds"] for claim in claims] == [True, True, True, False, True]
    assert (claims[3]["still_told"], claims[3]["runs"]) == (1, 1)


def test_claims_need_their_methods() -> None:
    report = _compared(6, 8, missing=[])
    del report["methods"]["memory"]
    assert claims_of(report) == []


def test_an_estimate_shrinks_with_what_is_done() -> None:
    plan = plan_of("frozen", "opd")
    nothing = {key: Past() for key in [*plan.references(), *plan.runs()]}
    first = estimate(plan, nothing)
    assert 0 < first.seconds <= first.at_most_s
    half = {
        **nothing,
        plan.runs()[0]: Past(steps={"ended": {"sessions": 9}, "held_out": {"seconds": 60.0, "of": 60}}),
    }
    then = estimate(plan, half)
    assert then.seconds < first.seconds
    assert then.requests < first.requests
    everything = {key: Past(steps={"ended": {"sessions": 9}}) for key in nothing}
    assert estimate(plan, everything).seconds == 0
