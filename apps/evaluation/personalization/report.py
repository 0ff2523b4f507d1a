"""From the journal to figures: one dictionary, written as JSON, from which tables and plots are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from apps.evaluation.guards import GUARDS, WITHIN, compare
from apps.evaluation.intervals import Interval, bootstrap, wilson
from apps.evaluation.personalization.claims import claims_of
from apps.evaluation.personalization.journal import Past
from apps.evaluation.personalization.plan import Plan, RunKey, reference_of
from apps.evaluation.users import load_user

Figures = dict[str, Any]


def build_report(plan: Plan, past: Mapping[RunKey, Past], about: Mapping[str, Any]) -> Figures:
    """Return everything that is known so far.

    Rates are fractions; counts are of replies or sessions; times are seconds.
    """
    references = {key: _reference(past[key]) for key in plan.references() if past[key].ended}
    runs = [
        _run(key, past[key], references.get(reference_of(key.user))) for key in plan.runs() if past[key].ended
    ]
    report: Figures = {
        **about,
        "mode": plan.terms.mode,
        "terms": asdict(plan.terms),
        "base_model": plan.base_model,
        "model": plan.model,
        "reply_tokens": {user: load_user(user).reply_tokens for user in plan.users},
        "users": list(plan.users),
        "seeds": list(plan.seeds),
        "method_configs": {
            method.name: {"says": method.says, **dict(method.config)} for method in plan.methods
        },
        "missing": [str(key) for key in [*plan.references(), *plan.runs()] if not past[key].ended],
        "code_versions": sorted({code for known in past.values() for code in known.codes}),
        "machines": sorted({machine for known in past.values() for machine in known.machines}),
        "hinted_teacher": _by_user(plan, references, "hinted"),
        "frozen_base": _by_user(plan, references, "base"),
        "methods": {
            method.name: _method(plan, [run for run in runs if run["method"] == method.name])
            for method in plan.methods
        },
        "runs": runs,
        "references": [{"user": key.user, **found} for key, found in references.items()],
    }
    report["claims"] = claims_of(report)
    return report


def rate_of(measured: Iterable[Mapping[str, Any]]) -> Figures:
    """Return how often replies passed over several measurements, with both intervals.

    `wilson` takes replies as independent, `bootstrap` draws whole questions: the wider one is the one to
    believe.
    """
    every = list(measured)
    passed, of = (sum(one[name] for one in every) for name in ("passed", "of"))
    clusters = [
        [1.0] * count + [0.0] * (one["of"] // len(one["by_question"]) - count)
        for one in every
        for count in one["by_question"]
    ]
    return {
        "passed": passed,
        "of": of,
        "rate": _rounded(passed / of) if of else None,
        "median_of_seeds": median(one["passed"] for one in every) if every else None,
        "wilson": _bounds(wilson(passed, of)),
        "bootstrap": _bounds(bootstrap(clusters)),
        "passed_on_topic": sum(one["passed_on_topic"] for one in every),
        "mean_words": _rounded(fmean(one["mean_words"] for one in every)) if every else None,
    }


def pass_rate_by_session(rows: Sequence[Sequence[bool]], *, cap: int, in_a_row: int) -> list[float]:
    """Return, session by session, in which part of the runs the first reply was right.

    A run that converged has ended: its user is content, and counts so from then on.
    """
    if not rows:
        return []
    length = min(cap, max(len(row) for row in rows))
    content = [len(row) >= in_a_row and all(row[-in_a_row:]) for row in rows]
    return [
        _rounded(
            fmean(
                float(row[at] if at < len(row) else ended) for row, ended in zip(rows, content, strict=True)
            )
        )
        for at in range(length)
    ]


def _reference(past: Past) -> Figures:
    return {name: past.steps[name] for name in ("base", "hinted")}


def _run(key: RunKey, past: Past, reference: Figures | None) -> Figures:
    outcome = {
        name: value
        for name, value in past.steps["ended"].items()
        if name not in ("event", "run", "fingerprint", "code", "at")
    }
    held_out = past.steps["held_out"]
    return {
        "method": key.method,
        "user": key.user,
        "seed": key.seed,
        "tenant": past.tenant,
        **outcome,
        **{
            name: past.steps.get(name) for name in ("held_out", "as_served", "told", "first_request", "idled")
        },
        "guards": compare(held_out, reference["base"]) if reference else None,
        "share_of_hinted": _share(held_out, reference["hinted"]) if reference else None,
        "versions_by_session": [past.sessions[number]["version"] for number in sorted(past.sessions)],
    }


def _method(plan: Plan, runs: Sequence[Figures]) -> Figures:
    figures: Figures = {
        "runs": len(runs),
        "held_out": rate_of(run["held_out"] for run in runs),
        "as_served": rate_of(run["as_served"] for run in runs if run["as_served"]),
        "complaints": sum(run["complaints"] for run in runs),
        "guards": _guards([run["guards"] for run in runs if run["guards"]]),
        "by_user": {
            user: rate_of(run["held_out"] for run in runs if run["user"] == user) for user in plan.users
        },
    }
    if plan.terms.mode == "once":
        asked = [run["first_request"] for run in runs if run["first_request"]]
        told = sum(bool(run["preferences"].get("active")) for run in runs)
        return {**figures, "first_request": rate_of(asked), "still_told": told}
    counts = [float(run["sessions"]) for run in runs]
    return {
        **figures,
        "converged": sum(run["converged"] for run in runs),
        "sessions": {
            "mean": _rounded(fmean(counts)) if counts else None,
            "median": median(counts) if counts else None,
            "bootstrap": _bounds(bootstrap([[count] for count in counts])) if counts else None,
        },
        "pass_rate_by_session": pass_rate_by_session(
            [run["passed"] for run in runs], cap=plan.terms.cap, in_a_row=plan.terms.in_a_row
        ),
    }


def _guards(every: Sequence[Figures]) -> Figures:
    """Return the guards' mean rates over runs, the base's, and whether they hold over all."""
    found: Figures = {}
    for name in GUARDS:
        rates, base = ([one[name][part] for one in every] for part in ("rate", "base"))
        if rates:
            found[name] = {
                "rate": _rounded(fmean(rates)),
                "base": _rounded(fmean(base)),
                "holds": fmean(rates) >= fmean(base) - WITHIN,
            }
    ratios = [one["length_ratio"] for one in every if one["length_ratio"] is not None]
    return {
        **found,
        "length_ratio": _rounded(fmean(ratios)) if ratios else None,
        "failed_requests": sum(one["failed_requests"] for one in every),
    }


def _by_user(plan: Plan, references: Mapping[RunKey, Figures], name: str) -> Figures:
    return {
        user: rate_of(found[name] for key, found in references.items() if key.user == user)
        for user in plan.users
    }


def _share(found: Mapping[str, Any], hinted: Mapping[str, Any]) -> float | None:
    rate, told = (one["passed"] / one["of"] for one in (found, hinted))
    return _rounded(rate / told) if told else None


def _bounds(interval: Interval) -> list[float]:
    return [_rounded(interval.low), _rounded(interval.high)]


def _rounded(value: float) -> float:
    return round(value, 4)
