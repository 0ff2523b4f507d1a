"""Two versions of one policy: where they come from, what made them, what checks said, how they answer."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from apps.adapters import store
from apps.adapters.models import AdapterVersion, GateResult, PointerMove
from apps.dashboard.compare.choice import Choice, chosen_two
from apps.dashboard.compare.learned import learned_by, learned_lines
from apps.dashboard.compare.rows import Line, differences, kept, measured, numbers_in
from apps.dashboard.compare.served import MOST_TURNS, served_by
from apps.dashboard.curves import drawn
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.templatetags.pages import brief, chip, moment
from apps.evaluation.intervals import wilson
from apps.learning.models import TrainingRun

MEASURES = {
    "loss": "Loss",
    "reward_mean": "Reward",
    "rollout_k3": "k3, rollout against learner",
    "ess": "Effective sample size",
    "clip_fraction": "Clipped",
    "staleness_mean": "Mean staleness, steps",
    "step_k3": "k3, before against after the step",
    "grad_norm": "Gradient norm",
    "lr": "Learning rate",
    "tokens": "Reply tokens",
}


@require_safe
@tenant_page()
def compare_versions(request: HttpRequest, place: Place) -> HttpResponse:
    """Set two versions of one policy side by side."""
    rows = AdapterVersion.objects.select_related("policy", "parent").defer("metrics")
    choice = chosen_two(request, "version", rows)
    return place.show(
        request,
        "compare_versions",
        section="adapters",
        choice=choice,
        **(_compared(place, choice) if choice.two else {}),
    )


def _compared(place: Place, choice: Choice[AdapterVersion]) -> dict[str, Any]:
    """Return what the page shows of the two. Ten queries."""
    one, other = choice.rows
    runs = {
        run.version_id: run
        for run in TrainingRun.objects.filter(version_id__in=[one.pk, other.pk]).only(
            "version_id", "created_at", "config", "config_number", "metrics"
        )
    }
    first, second = runs.get(one.pk), runs.get(other.pk)
    learned = learned_by([run.pk for run in runs.values()])
    both = served_by(place.tenant.pk, one.pk, other.pk)
    return {
        "one": one,
        "other": other,
        "first": f"Version {one.number}",
        "second": f"Version {other.number}",
        "lineage": lineage_of(one, other),
        "facts": _facts(place, (one, other), (first, second)),
        "begun": bool(first and second and first.config and second.config),
        "config": differences(first.config, second.config) if first and second else [],
        "learned": learned_lines(learned[first.pk], learned[second.pk]) if first and second else [],
        "checks": _checks(one, other),
        "both": both,
        "most": MOST_TURNS,
        "measures": measure_lines(first.metrics if first else {}, second.metrics if second else {}),
    }


def lineage_of(one: AdapterVersion, other: AdapterVersion) -> str:
    """Say how two versions of a policy, the older one first, are related. One query."""
    parents = {
        row_id: (parent_id, number)
        for row_id, parent_id, number in AdapterVersion.objects.filter(policy_id=one.policy_id).values_list(
            "id", "parent_id", "number"
        )
    }
    first, second = (_line(version.pk, parents) for version in (one, other))
    if one.pk in second:
        steps = second.index(one.pk)
        between = f"{steps} steps" if steps > 1 else "one step"
        return f"Version {other.number} is {between} on from version {one.number}."
    shared = next((row_id for row_id in first if row_id in second), None)
    where = f"version {parents[shared][1]}" if shared is not None else "the bare base"
    return (
        f"They part at {where}: version {one.number} is {_steps(first, shared)} from there,"
        f" version {other.number} {_steps(second, shared)}."
    )


def measure_lines(one: Mapping[str, Any], other: Mapping[str, Any]) -> Sequence[Line]:
    """Return what two steps measured, the measures of the charts first."""
    first, second = {**one, **drawn(one)}, {**other, **drawn(other)}
    return kept(
        measured(label, numbers_in(first, name), numbers_in(second, name)) for name, label in MEASURES.items()
    )


def _line(
    version_id: uuid.UUID, parents: Mapping[uuid.UUID, tuple[uuid.UUID | None, int]]
) -> list[uuid.UUID]:
    """Return a version and those that it came from, newest first."""
    found: list[uuid.UUID] = []
    at: uuid.UUID | None = version_id
    while at is not None:
        found.append(at)
        at = parents[at][0]
    return found


def _steps(line: Sequence[uuid.UUID], shared: uuid.UUID | None) -> str:
    steps = line.index(shared) if shared is not None else len(line)
    return "one step" if steps == 1 else f"{steps} steps"


def _facts(
    place: Place,
    versions: tuple[AdapterVersion, AdapterVersion],
    runs: tuple[TrainingRun | None, TrainingRun | None],
) -> Sequence[Line]:
    moves = dict(
        PointerMove.objects.filter(to_version__in=versions)
        .order_by("created_at")
        .values_list("to_version_id", "created_at")
    )
    live_id = versions[0].policy.live_id
    tenant = place.tenant.slug

    def line(label: str, *values: Any) -> Line:
        return Line(label, values[0], values[1])

    return kept(
        [
            line("State", *(chip("live" if one.pk == live_id else one.state) for one in versions)),
            line("Why", *(one.reason or "-" for one in versions)),
            line("Step from", *(_parent(one, tenant) for one in versions)),
            line("Steps from the base", *(str(one.depth) for one in versions)),
            line("Made by", *(_run(run, tenant) for run in runs)),
            line("Made", *(moment(one.created_at) for one in versions)),
            line("Last went live", *(moment(moves.get(one.pk)) for one in versions)),
            line("Rank, alpha", *(f"{one.rank}, {one.alpha}" for one in versions)),
            line("Weights", *(_size(one) for one in versions)),
        ]
    )


def _parent(one: AdapterVersion, tenant: str) -> str:
    if one.parent is None:
        return "the bare base"
    at = reverse("dashboard:adapter", kwargs={"tenant": tenant, "version_id": one.parent.pk})
    return format_html('<a href="{}">version {}</a>', at, one.parent.number)


def _run(run: TrainingRun | None, tenant: str) -> str:
    if run is None:
        return "-"
    at = reverse("dashboard:run", kwargs={"tenant": tenant, "run_id": run.pk})
    number = f", configuration {run.config_number}" if run.config_number else ""
    return format_html('<a href="{}">the run of {}</a>{}', at, moment(run.created_at), number)


def _size(one: AdapterVersion) -> str:
    """Return the size of the weights on the disk; "-" where this machine has no such file."""
    try:
        return filesizeformat((store.absolute(one.path) / store.WEIGHTS).stat().st_size)
    except (OSError, store.StoreError):
        return "-"


def _checks(one: AdapterVersion, other: AdapterVersion) -> Sequence[Line]:
    """Return what each check said of both. One query."""
    found = {
        (row.version_id, row.check_name): row
        for row in GateResult.objects.filter(version_id__in=[one.pk, other.pk]).order_by("created_at")
    }
    names = dict.fromkeys(name for _, name in found)
    return [
        Line(name, _said(found.get((one.pk, name))), _said(found.get((other.pk, name)))) for name in names
    ]


def _said(result: GateResult | None) -> str:
    if result is None:
        return "not looked at"
    passes, of = (numbers_in(result.detail, name) for name in ("passes", "of"))
    if passes is not None and of:  # what choosing measured: replies to held-out questions
        share = wilson(int(passes), int(of))
        within = f"{passes:.0f} of {of:.0f} pass ({100 * share.low:.0f} to {100 * share.high:.0f} %)"
        reason = str(result.detail.get("reason") or "")
        return format_html("{} {} <small>{}</small>", chip(_word(result)), within, reason[:200])
    return format_html("{} <small>{}</small>", chip(_word(result)), brief(result.detail))


def _word(result: GateResult) -> str:
    return "passed" if result.passed else "failed"
