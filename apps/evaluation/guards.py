"""What a reply must still be, whatever the taste: there, about its question, no loop, of a known length."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from apps.evaluation.loops import is_loop
from apps.evaluation.measure import Measurement
from apps.evaluation.talk import Answer

GUARDS = ("on_topic", "not_empty", "no_loop")
WITHIN = 0.1
"""A guard holds while at most this much less of the replies pass it than of the frozen base's."""


def describe(measured: Measurement, *, questions: int, failed: int) -> dict[str, Any]:
    """Return a measurement as plain data.

    Counts are of replies; `by_question` follows the questions' order.
    """
    answers = measured.answers
    by_question = [sum(answer.verdict.passed for answer in answers[at::questions]) for at in range(questions)]
    return {
        "version": measured.version,
        "passed": measured.score.passed,
        "of": measured.score.of,
        "by_question": by_question,
        "passed_on_topic": measured.passed_on_topic,
        "on_topic": measured.on_topic,
        "not_empty": sum(bool(answer.reply.text.strip()) for answer in answers),
        "no_loop": sum(not is_loop(answer.reply.text) for answer in answers),
        "failed_requests": failed,
        "mean_words": round(measured.mean_words, 2),
        "mean_tokens": round(fmean(answer.reply.tokens for answer in answers), 2) if answers else 0.0,
        "faults": _faults(answers),
        "examples": [[answer.question.text, answer.reply.text.strip()[:600]] for answer in answers[:3]],
    }


def compare(found: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guards of a measurement beside the frozen base's:
    rates, whether each holds, and the length ratio.

    The length is reported, not judged: some tastes are about it.
    """
    rates = {name: _rate(found, name) for name in GUARDS}
    before = {name: _rate(base, name) for name in GUARDS}
    return {
        **{
            name: {"rate": rates[name], "base": before[name], "holds": rates[name] >= before[name] - WITHIN}
            for name in GUARDS
        },
        "length_ratio": round(found["mean_words"] / base["mean_words"], 3) if base["mean_words"] else None,
        "failed_requests": found["failed_requests"],
    }


def _rate(found: Mapping[str, Any], name: str) -> float:
    return round(found[name] / found["of"], 4) if found["of"] else 0.0


def _faults(answers: Sequence[Answer]) -> dict[str, int]:
    return dict(Counter(answer.verdict.reason for answer in answers if answer.verdict.reason).most_common())
