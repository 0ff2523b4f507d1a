"""What the benchmark is to show, said of the figures: each claim with its figures and whether it holds."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from apps.evaluation.rules import TEACHABLE

FIRST_RULE = "one-short-sentence"
FIRST_RATE = 36 / 60
GAIN = 15 / 60
_EXACT = 1e-9  # 21/60 - 6/60 is a little less than 15/60
OTHER_RULES = 3
SHARE_OF_HINTED = 0.9

Claim = dict[str, Any]


def claims_of(report: Mapping[str, Any]) -> list[Claim]:
    """Return the claims that the report has the figures for. None as `holds`: something is missing still."""
    return _once(report) if report["mode"] == "once" else _joined(report)


def _claim(says: str, *, holds: bool | None, **figures: Any) -> Claim:
    return {"claim": says, "holds": holds, **figures}


def _once(report: Mapping[str, Any]) -> list[Claim]:
    claims = []
    for method in report["methods"]:
        runs = [run for run in report["runs"] if run["method"] == method]
        gains = {user: gain for user in report["users"] if (gain := _gain(report, runs, user)) is not None}
        if FIRST_RULE in gains:
            after = _median_rate([run["held_out"] for run in runs if run["user"] == FIRST_RULE])
            claims.append(
                _claim(
                    f"{method}, told once: un-hinted held-out replies pass at least 36 of 60 for {FIRST_RULE}",
                    holds=after >= FIRST_RATE - _EXACT,
                    median_rate=round(after, 4),
                )
            )
        others = {user: gain for user, gain in gains.items() if user in TEACHABLE and user != FIRST_RULE}
        if others:
            good = sum(gain >= GAIN - _EXACT for gain in others.values())
            claims.append(
                _claim(
                    f"{method}, told once: at least 15 of 60 better than before for three other teachable rules",
                    holds=good >= OTHER_RULES if good >= OTHER_RULES or len(others) >= OTHER_RULES else None,
                    median_gains={user: round(gain, 4) for user, gain in others.items()},
                )
            )
        if any(run["first_request"] for run in runs):
            first, hinted = report["methods"][method]["first_request"], _hinted(report, runs)
            claims.append(
                _claim(
                    f"{method}: the first request after the judgement passes as often as the hinted teacher"
                    " (or the teacher's rate lies within its interval)",
                    holds=hinted is not None and (first["rate"] >= hinted or first["bootstrap"][1] >= hinted),
                    first_request=first["rate"],
                    interval=first["bootstrap"],
                    hinted_teacher=hinted,
                )
            )
    return claims


def _joined(report: Mapping[str, Any]) -> list[Claim]:
    methods = report["methods"]
    if not all(name in methods and methods[name]["runs"] for name in ("joined", "memory", "combined")):
        return []
    whole = None if report["missing"] else True
    sessions = {name: methods[name]["sessions"]["mean"] for name in ("joined", "memory", "combined")}
    complaints = {name: methods[name]["complaints"] for name in ("joined", "memory", "combined")}
    joined = [run for run in report["runs"] if run["method"] == "joined"]
    hinted, rate = _hinted(report, joined), methods["joined"]["held_out"]["rate"]
    guards = methods["joined"]["guards"]
    return [
        _claim(
            "joined needs no more sessions than the better of memory and combined (means)",
            holds=whole and sessions["joined"] <= min(sessions["memory"], sessions["combined"]),
            sessions=sessions,
        ),
        _claim(
            "joined hears fewer complaints in total than memory, and than combined",
            holds=whole and complaints["joined"] < min(complaints["memory"], complaints["combined"]),
            complaints=complaints,
        ),
        _claim(
            "joined's final un-hinted pass rate is at least 0.9 of the hinted teacher's",
            holds=whole and hinted is not None and rate >= SHARE_OF_HINTED * hinted,
            joined=rate,
            hinted_teacher=hinted,
        ),
        _claim(
            "with the hint out of the prompt: no run of joined ends with a preference that is told",
            holds=whole and not any(run["preferences"].get("active") for run in joined),
            still_told=sum(bool(run["preferences"].get("active")) for run in joined),
            runs=len(joined),
        ),
        _claim(
            "joined's guards are within 10 % of the frozen base",
            holds=whole and all(found["holds"] for found in guards.values() if isinstance(found, dict)),
            guards=guards,
        ),
    ]


def _gain(report: Mapping[str, Any], runs: list[Any], user: str) -> float | None:
    """Return the median over seeds of what a user's held-out pass rate gained over the frozen base."""
    base = next((one["base"] for one in report["references"] if one["user"] == user), None)
    if base is None:
        return None
    gains = [
        run["held_out"]["passed"] / run["held_out"]["of"] - base["passed"] / base["of"]
        for run in runs
        if run["user"] == user
    ]
    return median(gains) if gains else None


def _hinted(report: Mapping[str, Any], runs: list[Any]) -> float | None:
    """Return the hinted teacher's pass rate over the same users as `runs`."""
    wanted = {run["user"] for run in runs}
    found = [one["hinted"] for one in report["references"] if one["user"] in wanted]
    of = sum(one["of"] for one in found)
    return round(sum(one["passed"] for one in found) / of, 4) if of else None


def _median_rate(measured: list[Any]) -> float:
    return float(median(one["passed"] / one["of"] for one in measured))
