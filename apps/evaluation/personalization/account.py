"""What a platform did for a policy in the background:
shadow replies, steps, versions, and how they were chosen."""

from statistics import median
from typing import Any

from django.db.models import Count, Sum

from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.learning.drift.models import TrainingPause
from apps.learning.models import Sample, TrainingRun
from apps.memory.models import Lesson

_OF_A_STEP = ("version", "outcome", "passes", "of", "closeness", "k3", "mean_tokens")


def account_of(policy: Policy) -> dict[str, Any]:
    """Return it as plain data, in the policy's tenant's scope.

    Times are seconds, medians over all of its steps.
    """
    written = Turn.objects.filter(policy=policy, kind=TurnKind.SHADOW).aggregate(
        replies=Count("id"), tokens=Sum("output_ids__len")
    )
    given_up = Turn.objects.filter(policy=policy, kind=TurnKind.SHADOW, state=TurnState.ABORTED).count()
    runs = list(TrainingRun.objects.filter(policy=policy).order_by("created_at"))
    versions = list(AdapterVersion.objects.filter(policy=policy).order_by("number"))
    lesson = Lesson.objects.filter(policy=policy).order_by("-created_at").first()
    figures = lesson.figures if lesson is not None else {}
    stick = figures.get("yardstick", {})
    return {
        "shadow": {
            "replies": written["replies"],
            "tokens": written["tokens"] or 0,
            "given_up": given_up,
            "samples": {
                source: Sample.objects.filter(policy=policy, source=source).count()
                for source in (TurnKind.LIVE.value, TurnKind.SHADOW.value)
            },
        },
        "steps": {
            "by_state": {
                state: sum(run.state == state for run in runs) for state in {run.state for run in runs}
            },
            "waiting_s": _median([_seconds(run.created_at, run.started_at) for run in runs]),
            "working_s": _median([_seconds(run.started_at, run.finished_at) for run in runs]),
            "choosing_s": _median([_seconds(one.created_at, one.ready_at) for one in versions]),
        },
        "paused": list(
            TrainingPause.objects.filter(policy=policy, resumed_at=None).values_list("reason", flat=True)
        ),
        "lesson": {
            "state": lesson.state if lesson is not None else "",
            "reason": lesson.reason if lesson is not None else "",
            "told_passes": stick.get("told", {}).get("passes"),
            "untold_passes": stick.get("untold", {}).get("passes"),
            "course": [{name: step.get(name) for name in _OF_A_STEP} for step in figures.get("course", ())],
        },
    }


def _seconds(begin: Any, end: Any) -> float | None:
    return (end - begin).total_seconds() if begin and end else None


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 1) if known else None
