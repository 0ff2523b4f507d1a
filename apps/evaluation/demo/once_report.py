"""What came of telling it once: one dictionary, written as JSON, and the table that is made of it."""

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apps.evaluation.chat import RequestLog
from apps.evaluation.demo.once import Course, Seen
from apps.evaluation.measure import Measurement

GAIN = 15 / 60


def build_report(
    course: Course, *, log: RequestLog, seconds: float, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the report. Times are seconds since the complaint;
    rates are of held-out replies that were told nothing."""
    report: dict[str, Any] = {
        **about,
        "mode": "once",
        "complaint": course.complaint,
        "complaints": int(bool(course.complaint)),
        "replies": [_row(seen) for seen in course.seen],
        "before": _measured(course.before),
        "after": _measured(course.after),
        "remembered_s": course.remembered_s,
        "versions_live": [list(one) for one in course.live],
        "left_the_prompt_s": course.left_the_prompt_s,
        "preferences": dict(course.preferences),
        "account": dict(course.account),
        "why_stopped": course.why_stopped,
        "requests": log.requests,
        "failed_requests": len(log.failures),
        "failures": [f"{failure.purpose}: {failure.error}" for failure in log.failures[:20]],
        "seconds": round(seconds, 1),
    }
    report["never_said_again"] = _never_again(report)
    report["bar"] = _bar(report, course)
    return report


def print_report(console: Console, report: Mapping[str, Any]) -> None:
    """Print the table and what it comes to."""
    table = Table(
        title=f"Told once: {report['complaint'] or 'nothing'}", title_justify="left", show_lines=True
    )
    for name, ratio in (("after", 1), ("who answers", 3), ("told", 2), ("reply", 6), ("to taste", 2)):
        table.add_column(name, ratio=ratio)
    for row in report["replies"]:
        table.add_row(
            f"{row['at_s']:.0f} s",
            Text(row["what"]),
            Text(row["told"]),
            Text(shorten(f"{row['question']} {row['reply']}", 260, placeholder=" …")),
            "yes" if row["passed"] else Text(row["reason"]),
        )
    console.print(table)
    for name in ("before", "after"):
        found = report[name]
        if found is not None:
            console.print(
                f"{name}: {found['passed']} of {found['of']} held-out replies to taste, told nothing (version {found['version']})",
                markup=False,
            )
    shadow = report["account"].get("shadow")
    if shadow:
        console.print(
            f"shadow replies {shadow['replies']}, tokens {shadow['tokens']}; stopped: {report['why_stopped']}",
            markup=False,
        )
    else:
        console.print(f"stopped: {report['why_stopped']}", markup=False)
    console.print(report["never_said_again"], markup=False, soft_wrap=True)
    missed = [name for name, kept in report["bar"].items() if not kept]
    console.print(
        f"Missed: {', '.join(missed)}" if missed else "Every promise of the demo was kept.", markup=False
    )


def _row(seen: Seen) -> dict[str, Any]:
    return {
        "at_s": round(seen.at_s, 1),
        "what": seen.what,
        "version": seen.version,
        "told": seen.told,
        "question": seen.answer.question.text,
        "reply": seen.answer.reply.text.strip(),
        "passed": seen.answer.verdict.passed,
        "reason": seen.answer.verdict.reason,
    }


def _measured(found: Measurement | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "version": found.version,
        "passed": found.score.passed,
        "of": found.score.of,
        "on_topic": found.on_topic,
        "mean_words": round(found.mean_words, 1),
    }


def _never_again(report: Mapping[str, Any]) -> str:
    if not report["complaint"]:
        return "Nothing was said at all."
    if report["left_the_prompt_s"] is not None:
        return (
            f'Said once, never again: "{report["complaint"]}" It left the prompt {report["left_the_prompt_s"]:.0f} s after it was said;'
            " since then neither the person nor the prompt says it."
        )
    return f'Said once by the person: "{report["complaint"]}" The prompt still says it: the weights do not hold it yet.'


def _bar(report: Mapping[str, Any], course: Course) -> dict[str, bool]:
    """Return which promises were kept; those that there was no time for are not among them."""
    bar = {"no failed request": report["failed_requests"] == 0}
    told = [seen for seen in course.seen if seen.told == "what is remembered"]
    if told:
        bar["remembered within 60 s"] = report["remembered_s"] is not None
    before, after = course.before, course.after
    if before is not None and after is not None:
        bar["at least 15 of 60 more held-out replies to taste"] = (
            after.score.rate - before.score.rate >= GAIN - 1e-9
        )
    return bar
