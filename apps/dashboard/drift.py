"""Drift: the three gauges with their bounds, what happened when one was crossed, and going on after that."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.adapters.models import Policy
from apps.dashboard.actors import named
from apps.dashboard.lists import chosen_id, listed
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.reasons import reason_of
from apps.dashboard.sheets import sheet
from apps.learning.drift import pauses
from apps.learning.drift.models import Crossing, DriftReading, Gauge, TrainingPause
from apps.learning.drift.selectors import Series, series
from kernel.errors import AttuneError
from kernel.rest.caller import Access

CROSSINGS = 20
REASONS = 12  # why turns were not learned from, the commonest
_LONGEST_REASON = 300
ASKS = {
    Gauge.ROLLOUT_LEARNER.value: "Is what it learns from what it says? The engine against the learner, on the same tokens.",
    Gauge.ROLLOUT_DEPLOY.value: "Does it learn from what it is asked? Turns that teach against turns that were served.",
    Gauge.LEARNER_DEPLOY.value: "Is it taught what people want? What the filters let through, and the judge against people.",
}


@dataclass(frozen=True, slots=True)
class GaugeShown:
    """One of the three gaps, as the page shows it."""

    label: str
    asks: str
    measures: list[Series]

    @property
    def past(self) -> int:
        """How many measures are past their bound now."""
        return sum(one.past for one in self.measures)


@require_safe
@tenant_page()
def drift(request: HttpRequest, place: Place) -> HttpResponse:
    """Show how far a policy has drifted."""
    policies = list(Policy.objects.select_related("live").order_by("name"))
    policy = _policy(policies, chosen_id(request, "policy"))
    measured = series(policy.pk) if policy else []
    gauges = [
        GaugeShown(label, ASKS[value], [one for one in measured if one.bound.gauge == value])
        for value, label in Gauge.choices
    ]
    crossed = Crossing.objects.filter(policy=policy).select_related("version", "reading__run")
    pause = TrainingPause.objects.filter(policy=policy, resumed_at=None).first()
    page = listed(request, crossed, size=CROSSINGS)
    return place.show(
        request,
        "drift",
        section="drift",
        words=named(place, [*([pause.actor] if pause else []), *(one.cleared_by for one in page.rows)]),
        policies=policies,
        policy=policy,
        gauges=[one for one in gauges if one.measures],
        past=sum(one.past for one in gauges),
        chart={"drift": [_chart(one) for one in measured]},
        pause=pause,
        page=page,
        reasons=_reasons(policy),
    )


def _policy(policies: list[Policy], wanted: uuid.UUID | None) -> Policy | None:
    """Return the policy that is asked for, else the first; raise Http404 for one that is not there."""
    if wanted is None:
        return policies[0] if policies else None
    for policy in policies:
        if policy.pk == wanted:
            return policy
    raise Http404


def _chart(one: Series) -> dict[str, Any]:
    return {
        "name": one.bound.measure,
        "label": one.bound.unit or "value",
        "side": one.bound.side,
        "points": [[point.at.timestamp(), point.value, point.limit] for point in one.points],
    }


def _reasons(policy: Policy | None) -> list[tuple[str, int]]:
    """Return why the turns of the newest reading of the third gauge were not learned
    from, the commonest first."""
    newest = (
        DriftReading.objects.filter(policy=policy, gauge=Gauge.LEARNER_DEPLOY)
        .order_by("-created_at")
        .values_list("detail", flat=True)
        .first()
    )
    counts = (newest or {}).get("reasons") or {}
    return sorted(counts.items(), key=lambda one: -one[1])[:REASONS]


@require_safe
@tenant_page()
def drift_csv(request: HttpRequest, place: Place) -> StreamingHttpResponse:
    """Send the points of the charts as CSV."""
    policies = list(Policy.objects.order_by("name"))
    policy = _policy(policies, chosen_id(request, "policy"))
    return sheet(
        f"{place.tenant.slug}-{policy.name}-drift" if policy else f"{place.tenant.slug}-drift",
        ["time", "gauge", "measure", "value", "unit", "side", "limit", "run"],
        _points(series(policy.pk) if policy else []),
    )


def _points(measured: list[Series]) -> Iterator[list[Any]]:
    for one in measured:
        bound = one.bound
        for point in one.points:
            cells = [point.at.isoformat(timespec="seconds"), bound.gauge.value, bound.measure, point.value]
            yield [*cells, bound.unit, bound.side, point.limit, str(point.run_id) if point.run_id else ""]


@require_POST
@tenant_page(needs=Access.MANAGE)
def training(request: HttpRequest, place: Place, policy_id: uuid.UUID) -> HttpResponse:
    """Let a policy stand still, or train again after it stood still."""
    change = {"pause": pauses.pause, "resume": pauses.resume}.get(request.POST.get("wish", ""))
    if change is None:
        raise Http404
    try:
        why = reason_of(request, longest=_LONGEST_REASON, unsaid="chosen on the page of its drift")
        change(policy_id=policy_id, actor=place.actor, reason=why)
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, f"Nothing has changed: {error.message}.")
    else:
        messages.success(
            request,
            "Training goes on with the next batch. What stopped it would stop it anew."
            if change is pauses.resume
            else "Training stands still. Turns are served, judged and kept meanwhile.",
        )
    return redirect(f"{reverse('dashboard:drift', kwargs={'tenant': place.tenant.slug})}?policy={policy_id}")
