"""Training runs: what they learned from, how far they are, what they measured, why they failed."""

import uuid
from operator import itemgetter
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from apps.adapters.models import Policy
from apps.dashboard import live
from apps.dashboard.curves import CURVES, drawn
from apps.dashboard.lists import chosen_id, chosen_word, listed
from apps.dashboard.places import Place, tenant_page
from apps.learning import runs as services
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, TrainingRun
from apps.learning.selectors import with_ready_counts, with_sample_counts
from kernel.errors import AttuneError
from kernel.rest.caller import Access

CURVE = 200  # runs of a policy on its chart


@require_safe
@tenant_page()
def runs(request: HttpRequest, place: Place) -> HttpResponse:
    """List runs, newest first, and draw what a policy's steps measured."""
    policy, state = chosen_id(request, "policy"), chosen_word(request, "state", RunState.values)
    rows = TrainingRun.objects.select_related("policy", "parent", "version")
    if policy is not None:
        rows = rows.filter(policy_id=policy)
    if state:
        rows = rows.filter(state=state)
    policies = list(with_ready_counts(Policy.objects.order_by("name")))
    return place.show(
        request,
        "runs",
        section="runs",
        page=listed(request, with_sample_counts(rows)),
        policies=policies,
        states=RunState.choices,
        curves={"series": CURVES, "steps": _curve(policy or policies[0].pk) if policies else []},
        chosen={"policy": str(policy or ""), "state": state},
    )


def _curve(policy_id: uuid.UUID) -> list[dict[str, Any]]:
    """Return the measures of a policy's last steps, by the number of the version that each made."""
    steps = (
        TrainingRun.objects.filter(policy_id=policy_id, state=RunState.SUCCEEDED)
        .order_by("-created_at")
        .values_list("finished_at", "metrics", "version__number")[:CURVE]
    )
    return sorted(
        (
            {
                "t": finished.timestamp(),
                "version": number,
                **drawn(metrics),
            }
            for finished, metrics, number in steps
            if finished is not None and number is not None
        ),
        key=itemgetter("version"),
    )


def _run(run_id: uuid.UUID) -> TrainingRun:
    found = (
        with_sample_counts(TrainingRun.objects.select_related("policy", "parent", "version"))
        .filter(pk=run_id)
        .first()
    )
    if found is None:
        raise Http404
    return found


@require_safe
@tenant_page()
def run(request: HttpRequest, place: Place, run_id: uuid.UUID) -> HttpResponse:
    """Show one run; while it is open the page follows it."""
    found = _run(run_id)
    taken = Sample.objects.filter(run=found).values_list("source").annotate(n=Count("pk")).order_by("source")
    return place.show(
        request, "run", section="runs", run=found, taken=taken, open=found.state in OPEN_RUN_STATES
    )


@require_safe
@tenant_page()
def events(request: HttpRequest, place: Place, run_id: uuid.UUID) -> StreamingHttpResponse:
    """Follow one run."""
    _run(run_id)

    def piece() -> tuple[str, bool]:
        now = _run(run_id)
        html = render_to_string("dashboard/_run_progress.html", {"run": now, "place": place})
        return html, now.state not in OPEN_RUN_STATES

    return live.stream(request, tenant_id=place.tenant.pk, piece=piece)


@require_POST
@tenant_page(needs=Access.MANAGE)
def start(request: HttpRequest, place: Place, policy_id: uuid.UUID) -> HttpResponse:
    """Ask for a step of what waits now."""
    policy = Policy.objects.filter(pk=policy_id).first()
    if policy is None:
        raise Http404
    try:
        asked = services.request_run(policy=policy, actor=place.actor)
    except AttuneError as error:
        messages.error(request, error.message)
        return redirect("dashboard:runs", tenant=place.tenant.slug)
    return redirect("dashboard:run", tenant=place.tenant.slug, run_id=asked.pk)


@require_POST
@tenant_page(needs=Access.MANAGE)
def cancel(request: HttpRequest, place: Place, run_id: uuid.UUID) -> HttpResponse:
    """End an open run without a version."""
    try:
        services.cancel_run(run_id=run_id, actor=place.actor)
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
    else:
        messages.success(request, "Cancelled. Its turns wait for the next run.")
    return redirect("dashboard:run", tenant=place.tenant.slug, run_id=run_id)
