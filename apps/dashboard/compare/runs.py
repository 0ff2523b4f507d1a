"""Two runs of one policy: the curves that lead to both, what they were given,
how long they took, what came of them."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from apps.dashboard.actors import named
from apps.dashboard.compare.choice import Choice, chosen_two
from apps.dashboard.compare.learned import learned_by, learned_lines
from apps.dashboard.compare.rows import Line, Number, differences, kept, measured, numbers_in
from apps.dashboard.compare.versions import measure_lines
from apps.dashboard.curves import CURVES, drawn
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.templatetags.pages import chip, moment, took
from apps.dashboard.templatetags.pages import named as called
from apps.learning.models import RunState, TrainingRun

STEPS = 200
"""Of a lineage that are drawn, the newest."""
Step = tuple[uuid.UUID | None, int, Mapping[str, float]]
"""The version that a step was made from, how many steps that is from the base, what it measured."""


@require_safe
@tenant_page()
def compare_runs(request: HttpRequest, place: Place) -> HttpResponse:
    """Set two runs of one policy side by side."""
    rows = TrainingRun.objects.select_related("policy", "parent", "version")
    choice = chosen_two(request, "run", rows)
    return place.show(
        request,
        "compare_runs",
        section="runs",
        choice=choice,
        **(_compared(place, choice) if choice.two else {}),
    )


def _compared(place: Place, choice: Choice[TrainingRun]) -> dict[str, Any]:
    """Return what the page shows of the two. Three queries, and those for the names of who asked."""
    one, other = choice.rows
    learned = learned_by([one.pk, other.pk])
    return {
        "one": one,
        "other": other,
        "first": "The older run",
        "second": "The newer run",
        "series": CURVES,
        "chart": {"pairs": curves_of(one, other)},
        "outcome": _outcome(place, one, other),
        "config": differences(one.config, other.config),
        "begun": bool(one.config and other.config),
        "learned": learned_lines(learned[one.pk], learned[other.pk]),
        "measures": measure_lines(one.metrics, other.metrics),
        "timings": _timings(one, other),
    }


def curves_of(one: TrainingRun, other: TrainingRun) -> list[dict[str, Any]]:
    """Return a chart of each measure: along the lineage that leads to each run, by steps from the base.

    One query.

    A run is one step, so its curve is that of the steps before it. Where one run's version came before the
    other's, both lines are the same until there.
    """
    made: dict[uuid.UUID | None, Step] = {
        version_id: (parent_id, depth, drawn(metrics))
        for version_id, parent_id, depth, metrics in TrainingRun.objects.filter(
            policy_id=one.policy_id, state=RunState.SUCCEEDED
        )
        .order_by("-created_at")
        .values_list("version_id", "parent_id", "version__depth", "metrics")[: 4 * STEPS]
    }
    lines = [_points(run, made) for run in (one, other)]
    steps = sorted({step for line in lines for step in line})
    return [
        {
            "name": name,
            "x": steps,
            "lines": [
                {"label": label, "values": [line.get(step, {}).get(name) for step in steps]}
                for label, line in zip(("the older run", "the newer run"), lines, strict=True)
            ],
        }
        for name in CURVES
    ]


def _points(run: TrainingRun, made: Mapping[uuid.UUID | None, Step]) -> dict[int, Mapping[str, float]]:
    """Return what each step of a run's lineage measured, its own last, by steps from the base."""
    at = run.parent_id
    found = {(run.parent.depth if run.parent else 0) + 1: drawn(run.metrics)}
    while at in made and len(found) < STEPS:
        parent_id, depth, measures = made[at]
        found[depth] = dict(measures)
        at = parent_id
    return dict(found)


def _outcome(place: Place, *runs: TrainingRun) -> Sequence[Line]:
    words = named(place, [run.trigger for run in runs])

    def line(label: str, *values: str) -> Line:
        return Line(label, values[0], values[1])

    return kept(
        [
            line("State", *(chip(run.state) for run in runs)),
            line("Why", *(run.reason or "-" for run in runs)),
            line("Made", *(_version(run, place.tenant.slug) for run in runs)),
            line("Step from", *(_parent(run, place.tenant.slug) for run in runs)),
            line("Asked for by", *(called(run.trigger, words) for run in runs)),
            line("Asked for", *(moment(run.created_at) for run in runs)),
            line("Configuration", *(str(run.config_number or "-") for run in runs)),
            line("Tries", *(str(run.attempts) for run in runs)),
        ]
    )


def _version(run: TrainingRun, tenant: str) -> str:
    if run.version is None:
        return "no version"
    at = reverse("dashboard:adapter", kwargs={"tenant": tenant, "version_id": run.version.pk})
    return format_html('<a href="{}">version {}</a>', at, run.version.number)


def _parent(run: TrainingRun, tenant: str) -> str:
    if run.parent is None:
        return "the bare base"
    at = reverse("dashboard:adapter", kwargs={"tenant": tenant, "version_id": run.parent.pk})
    return format_html('<a href="{}">version {}</a>', at, run.parent.number)


def _timings(one: TrainingRun, other: TrainingRun) -> Sequence[Line]:
    """Return how long each waited and worked, then the trainer's phases in the order of their length."""
    phases: list[Mapping[str, Any]] = [
        seconds if isinstance(seconds := run.metrics.get("seconds"), dict) else {} for run in (one, other)
    ]
    first, second = phases
    names = sorted({*first, *second} - {"total"}, key=lambda name: (-_longest(phases, name), name))
    return kept(
        [
            measured("Waited", _waited(one), _waited(other), unit="s"),
            Line("Worked", took(one), took(other)),
            measured("Of the trainers", one.trainer_s or None, other.trainer_s or None, unit="s"),
            *(
                measured(f"Phase {name}", numbers_in(first, name), numbers_in(second, name), unit="s")
                for name in names
            ),
        ]
    )


def _longest(phases: Sequence[Mapping[str, Any]], name: str) -> float:
    return max(numbers_in(one, name) or 0.0 for one in phases)


def _waited(run: TrainingRun) -> Number:
    if run.started_at is None:
        return None
    return round((run.started_at - run.created_at).total_seconds(), 1)
