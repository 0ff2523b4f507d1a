"""Training runs: what they learned from, how far they are, what they measured, why they failed."""

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from apps.adapters.models import Policy
from apps.dashboard import live
from apps.dashboard.actors import named
from apps.dashboard.curves import curves, newest_step
from apps.dashboard.lists import chosen_id, chosen_word, listed
from apps.dashboard.measures import main_measures, measures
from apps.dashboard.places import Place, tenant_page
from apps.learning import runs as services
from apps.learning.drift.selectors import with_pauses
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, TrainingRun
from apps.learning.selectors import with_ready_counts, with_sample_counts
from kernel.errors import AttuneError
from kernel.rest.caller import Access

FOLLOWED = 50  # runs whose state the list's page follows: the newest


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
    policies = list(with_pauses(with_ready_counts(Policy.objects.order_by("name"))))
    charted = policy or (policies[0].pk if policies else None)
    page = listed(request, with_sample_counts(rows))
    return place.show(
        request,
        "runs",
        section="runs",
        page=page,
        words=named(place, [run.trigger for run in page.rows]),
        policies=policies,
        states=RunState.choices,
        curves=curves(charted),
        charted=next((one for one in policies if one.pk == charted), None),
        under_way=_under_way(),
        chosen={"policy": str(policy or ""), "state": state},
    )


def _under_way() -> list[TrainingRun]:
    """Return the runs that wait or are at work, the oldest first: one of a policy at most."""
    rows = TrainingRun.objects.filter(state__in=OPEN_RUN_STATES).select_related("policy")
    return list(rows.order_by("created_at")[:FOLLOWED])


@require_safe
@tenant_page()
def runs_events(request: HttpRequest, place: Place) -> StreamingHttpResponse:
    """Follow the list: what is under way, how the newest runs stand,
    and a policy's charts once they have grown.

    A piece stands for itself: it says how things are, not what is new, so one that comes twice changes
    nothing.
    """
    policy = chosen_id(request, "policy")
    if policy is not None and not Policy.objects.filter(pk=policy).exists():
        raise Http404
    sent: set[uuid.UUID | None] = set()

    def piece() -> tuple[str, bool]:
        newest = newest_step(policy)
        grown: dict[str, Any] = {}
        if newest not in sent:
            sent.add(newest)
            grown = {"curves": curves(policy)}
        rows = TrainingRun.objects.order_by("-created_at", "-id").defer("config", "metrics")[:FOLLOWED]
        context = {"place": place, "under_way": _under_way(), "rows": rows, **grown}
        return render_to_string("dashboard/_runs_live.html", context), False

    return live.stream(request, place, piece=piece)


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
    return place.show(
        request,
        "run",
        section="runs",
        **_shown(place, found),
        curves=_curves(found),
    )


def _shown(place: Place, run: TrainingRun) -> dict[str, Any]:
    """Return what the page says of a run."""
    return {
        "run": run,
        "words": named(place, [run.trigger]),
        "open": run.state in OPEN_RUN_STATES,
        "taken": Sample.objects.filter(run=run)
        .values_list("source")
        .annotate(n=Count("pk"))
        .order_by("source"),
        "main": main_measures(run.metrics),
        "measures": measures(run.metrics),
    }


def _curves(run: TrainingRun) -> dict[str, Any]:
    """Return the charts of the steps that led to a run, its own last."""
    here = run.version.number if run.version else None
    drawn = curves(run.policy_id, until=run.created_at, here=here)
    return {**drawn, "open": run.state in OPEN_RUN_STATES}


@require_safe
@tenant_page()
def events(request: HttpRequest, place: Place, run_id: uuid.UUID) -> StreamingHttpResponse:
    """Follow one run; its charts grow when it is over."""
    _run(run_id)

    def piece() -> tuple[str, bool]:
        now = _shown(place, _run(run_id))
        over = not now["open"]
        grown = {"curves": _curves(now["run"])} if over else {}
        return render_to_string("dashboard/_run_live.html", {"place": place, **now, **grown}), over

    return live.stream(request, place, piece=piece)


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
