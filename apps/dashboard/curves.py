"""What charts show of training steps."""

import datetime as dt
import uuid
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from django.db.models import QuerySet

from apps.learning.models import RunState, TrainingRun

CURVES = {
    "loss": "loss",
    "reward_mean": "reward",
    "rollout_k3": "k3, rollout against learner",
    "ess": "effective sample size",
    "clip_fraction": "clipped",
    "staleness_mean": "mean staleness, steps",
}
STEPS = 200
"""Steps on a chart: the newest."""


def drawn(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return what the charts show of a step, where the step measured it."""
    found = {
        name: float(metrics[name])
        for name in CURVES
        if isinstance(metrics.get(name), int | float) and not isinstance(metrics.get(name), bool)
    }
    ages = metrics.get("staleness")  # {steps: samples}
    if isinstance(ages, dict) and (samples := sum(ages.values())):
        found["staleness_mean"] = sum(int(age) * n for age, n in ages.items()) / samples
    return found


def curves(
    policy_id: uuid.UUID | None, *, until: dt.datetime | None = None, here: int | None = None
) -> dict[str, Any]:
    """Return the charts of a policy's newest steps, asked for `until` then, by the version that each made.

    One query.

    `here` is the version that is marked. A client that has older ones replaces them all.
    """
    rows = _steps_of(policy_id)
    if until is not None:
        rows = rows.filter(created_at__lte=until)
    found = rows.order_by("-created_at").values_list("finished_at", "metrics", "version__number")[:STEPS]
    steps = [
        {"t": finished.timestamp(), "version": number, **drawn(metrics)}
        for finished, metrics, number in found
        if finished is not None and number is not None
    ]
    return {"series": CURVES, "steps": sorted(steps, key=itemgetter("version")), "here": here}


def newest_step(policy_id: uuid.UUID | None) -> uuid.UUID | None:
    """Return the policy's newest run that made a version: while it is the same, so are the charts."""
    return _steps_of(policy_id).order_by("-created_at").values_list("pk", flat=True).first()


def _steps_of(policy_id: uuid.UUID | None) -> QuerySet[TrainingRun]:
    steps = TrainingRun.objects.filter(state=RunState.SUCCEEDED)
    return steps.none() if policy_id is None else steps.filter(policy_id=policy_id)
