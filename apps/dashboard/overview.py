"""The first page: how much was asked, how fast it was answered, and what came of the versions."""

import datetime as dt

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.models import User
from apps.accounts.selectors import memberships_of
from apps.adapters.models import Policy
from apps.adapters.selectors import with_version_counts
from apps.dashboard.first import first_request
from apps.dashboard.lists import chosen_word
from apps.dashboard.metrics import RANGES, moves, points, traffic
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.rollups.histogram import ERROR
from apps.dashboard.sheets import sheet


@never_cache
@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Go to the person's tenant: the oldest they belong to."""
    assert isinstance(request.user, User)  # noqa: S101  # login_required saw to it
    memberships = memberships_of(request.user)
    if not memberships:
        return render(request, "dashboard/nowhere.html")
    return redirect("dashboard:overview", tenant=memberships[0].tenant.slug)


@require_safe
@tenant_page()
def overview(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the tenant's traffic, its policies, and how to ask for the first time."""
    span = chosen_word(request, "range", list(RANGES)) or "7d"
    now = timezone.now()
    policies = list(with_version_counts(Policy.objects.select_related("live")).order_by("name"))
    seen = traffic(place.tenant.pk, span, now)
    return place.show(
        request,
        "overview",
        section="overview",
        **first_request(place),
        error=f"{100 * ERROR:g}",
        policies=policies,
        ranges=list(RANGES),
        span=span,
        traffic=seen,
        chart={
            **_stretch(span, now),
            "points": seen.points,
            "rewards": seen.rewards,
            "moves": moves(place.tenant.pk, span, now),
            "named": len(policies) > 1,
        },
    )


def _stretch(span: str, now: dt.datetime) -> dict[str, float]:
    """Return which time the charts are of, and how long what one point sums up is: seconds."""
    hours, minutes = RANGES[span]
    until = now.timestamp()
    return {"since": until - 3600 * hours, "until": until, "step": 60 * minutes}


@require_safe
@tenant_page()
def overview_csv(request: HttpRequest, place: Place) -> StreamingHttpResponse:
    """Send the points of the charts as CSV."""
    span = chosen_word(request, "range", list(RANGES)) or "7d"
    exact, about = ("t", "requests", "failed", "tokens"), ("p50", "p95")
    return sheet(
        f"{place.tenant.slug}-{span}",
        ["time", "requests", "failed", "reply_tokens", "ttft_p50_ms", "ttft_p95_ms"],
        [
            [*(point[name] for name in exact), *(_rounded(point[name]) for name in about)]
            for point in points(place.tenant.pk, span)
        ],
    )


def _rounded(milliseconds: float | None) -> float | None:
    """Return a percentile without digits that it does not have."""
    return None if milliseconds is None else float(f"{milliseconds:.4g}")
