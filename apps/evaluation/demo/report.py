"""The demo's result: one dictionary, written as JSON, from which the table and the plot are made."""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from apps.evaluation.chat import RequestLog
from apps.evaluation.demo.board import Board
from apps.evaluation.demo.ledger import VersionFacts
from apps.evaluation.demo.talk import Talker
from apps.evaluation.demo.teach import Course
from apps.evaluation.demo.trickle import first_token_times
from apps.evaluation.measure import Measurement
from apps.evaluation.talk import Answer

BAR_BEFORE, BAR_AFTER, BAR_SWAPS = 9, 30, 5


def build_report(
    *,
    board: Board,
    course: Course,
    talker: Talker,
    log: RequestLog,
    versions: Sequence[VersionFacts],
    talk: Mapping[str, int],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the report. Counts are of replies, durations in seconds unless named otherwise."""
    swaps = [version.live_at.timestamp() for version in versions if version.live_at]
    rows = [_version_row(version, board, talker, log) for version in versions]
    waits = [row["feedback_to_reply_s"] for row in rows if row["feedback_to_reply_s"] is not None]
    report: dict[str, Any] = {
        **about,
        "before": course.before.score.passed,
        "after": course.after.score.passed,
        "of": course.after.score.of,
        "before_on_topic": course.before.on_topic,
        "after_on_topic": course.after.on_topic,
        "after_passed_on_topic": course.after.passed_on_topic,
        "before_mean_words": round(course.before.mean_words, 1),
        "after_mean_words": round(course.after.mean_words, 1),
        "failures_by_rule": {"before": faults(course.before.answers), "after": faults(course.after.answers)},
        "chosen_version": course.chosen,
        "newest_version": course.newest,
        "choice": _choice_in_words(course),
        "why_stopped": course.why_stopped,
        "swaps": board.facts.swaps,
        "moves_back": board.facts.moves_back,
        "requests": log.requests,
        "failed_requests": len(log.failures),
        "failures": [f"{failure.purpose}: {failure.error}" for failure in log.failures[:20]],
        "seconds": round(board.elapsed_s, 1),
        "sessions": len(talker.answers),
        "complaints": talker.complaints,
        "thanks": talker.thanks,
        "turns": dict(talk),
        "samples": dict(board.facts.samples),
        "samples_left_out": dict(board.facts.left_out),
        "runs": dict(board.facts.runs),
        "feedback_to_improved_reply_s": round(statistics.median(waits), 1) if waits else None,
        "first_token_ms": {
            purpose: first_token_times([r for p, r in log.replies if p == purpose], swaps=swaps)
            for purpose in ("trickle", "talk")
        },
        "versions": rows,
        "examples": examples(course.before, course.after),
    }
    report["bar"] = judge_bar(report)
    return report


def judge_bar(report: Mapping[str, Any]) -> dict[str, bool]:
    """Return which of the demo's promises were kept, by name."""
    return {
        f"before at most {BAR_BEFORE}": report["before"] <= BAR_BEFORE,
        f"after at least {BAR_AFTER}": report["after"] >= BAR_AFTER,
        f"at least {BAR_SWAPS} swaps": report["swaps"] >= BAR_SWAPS,
        "no failed request": report["failed_requests"] == 0,
    }


def faults(answers: Sequence[Answer]) -> dict[str, int]:
    """Return how many answers failed for which reason, the most frequent first."""
    counts: dict[str, int] = defaultdict(int)
    for answer in answers:
        if answer.verdict.reason:
            counts[answer.verdict.reason] += 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def examples(before: Measurement, after: Measurement, *, count: int = 3) -> list[dict[str, str]]:
    """Return questions with a reply of each version, side by side: the first that now pass on topic."""
    old: dict[str, Answer] = {}
    for answer in before.answers:
        old.setdefault(answer.question.text, answer)
    good = [answer for answer in after.answers if answer.verdict.passed and answer.on_topic]
    chosen: dict[str, Answer] = {}
    for answer in [*good, *after.answers]:
        chosen.setdefault(answer.question.text, answer)
    return [
        {"question": text, "before": old[text].reply.text.strip(), "after": answer.reply.text.strip()}
        for text, answer in list(chosen.items())[:count]
        if text in old
    ]


def _version_row(version: VersionFacts, board: Board, talker: Talker, log: RequestLog) -> dict[str, Any]:
    measured = board.measured.get(version.number)
    first = [answer for answer in talker.answers if answer.reply.version == version.number]
    served = [
        reply.started + reply.first_token_s for _, reply in log.replies if reply.version == version.number
    ]
    wait = None
    if served and version.last_feedback_at:
        wait = round(min(served) - version.last_feedback_at.timestamp(), 1)
    return {
        "number": version.number,
        "parent": version.parent,
        "state": version.state,
        "reason": version.reason,
        "live_at": version.live_at.isoformat() if version.live_at else None,
        "samples": version.samples,
        "samples_with_hint": version.with_hint,
        "run_seconds": round(version.run_seconds, 1),
        "validation_passed": measured.score.passed if measured else None,
        "validation_of": measured.score.of if measured else 0,
        "validation_on_topic": measured.on_topic if measured else None,
        "validation_passed_on_topic": measured.passed_on_topic if measured else None,
        "validation_mean_words": round(measured.mean_words, 1) if measured else None,
        "first_replies_passed": sum(answer.verdict.passed for answer in first),
        "first_replies": len(first),
        "feedback_to_reply_s": wait,
        "metrics": version.metrics,
    }


def _choice_in_words(course: Course) -> str:
    if course.chosen == 0:
        return "no version was measured: version 0, the bare base, stays live"
    if course.chosen == course.newest and not course.went_back:
        return f"version {course.chosen}, the newest, was the best on the validation questions and stays live"
    moves = ", ".join(f"from {old} to {new}" for old, new in course.went_back)
    return (
        f"the curve overshoots, so the best version on the validation questions was kept: version {course.chosen}"
        f" (newest live one: {course.newest}; went back {moves or 'never'})"
    )
