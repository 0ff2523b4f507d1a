"""The first page: how much was asked, how fast it was answered, and what came of the versions."""

import datetime as dt
import uuid
from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.models import User
from apps.accounts.selectors import memberships_of
from apps.adapters.models import Policy
from apps.adapters.selectors import with_version_counts
from apps.dashboard.first import first_request
from apps.dashboard.lists import chosen_id, chosen_word
from apps.dashboard.metrics import RANGES, looked_at, moves, points, traffic
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.rollups.histogram import ERROR
from apps.dashboard.sheets import sheet
from apps.learning.drift.selectors import with_pauses


@never_cache
@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Go to the person's tenant: the oldest they belong to."""
    assert isinstance(request.user, User)  # noqa: S101  # login_required saw to it
    memberships = memberships_of(request.user)
    if not memberships:
        return render(request, "dashboard/nowhere.html", {"open": settings.SIGNUP_OPEN})
    return redirect("dashboard:overview", tenant=memberships[0].tenant.slug)


@require_safe
@tenant_page()
def overview(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the tenant's traffic, its policies, and how to ask for the first time."""
    span = chosen_word(request, "range", list(RANGES)) or "7d"
    now = timezone.now()
    policies = list(with_pauses(with_version_counts(Policy.objects.select_related("live"))).order_by("name"))
    policy = _policy(policies, chosen_id(request, "policy"))
    of = policy.pk if policy else None
    seen = traffic(place.tenant.pk, span, now, of)
    return place.show(
        request,
        "overview",
        section="overview",
        **first_request(place),
        error=f"{100 * ERROR:g}",
        policies=policies,
        policy=policy,
        ranges=list(RANGES),
        span=span,
        traffic=seen,
        chart={
            **_stretch(span, now),
            "points": seen.points,
            "rewards": seen.rewards,
            "moves": moves(place.tenant.pk, span, now, of),
            "named": len(policies) > 1 and policy is None,
        },
    )


def _policy(policies: Sequence[Policy], wanted: uuid.UUID | None) -> Policy | None:
    """Return the policy that is asked for, None for all; raise Http404 for one that is not there."""
    if wanted is None:
        return None
    for policy in policies:
        if policy.pk == wanted:
            return policy
    raise Http404


def _stretch(span: str, now: dt.datetime) -> dict[str, float]:
    """Return which time the charts are of, and how long what one point sums up is: seconds."""
    since, until = looked_at(span, now)
    return {"since": since.timestamp(), "until": until.timestamp(), "step": 60 * RANGES[span][1]}


@require_safe
@tenant_page()
def overview_csv(request: HttpRequest, place: Place) -> StreamingHttpResponse:
    """Send the points of the charts as CSV."""
    span = chosen_word(request, "range", list(RANGES)) or "7d"
    policy = _policy(list(Policy.objects.all()), chosen_id(request, "policy"))
    now = timezone.now()
    found = points(place.tenant.pk, span, now, policy.pk if policy else None)
    return sheet(
        "-".join((place.tenant.slug, *([policy.name] if policy else []), span)),
        ["from", "to", *_EXACT.values(), *_ABOUT.values()],
        [
            [
                *_times(point["t"], span, now),
                *(point[name] for name in _EXACT),
                *(_rounded(point[name]) for name in _ABOUT),
            ]
            for point in found
        ],
    )


# columns of the CSV: counts are exact, the rest is not
_EXACT = {
    "requests": "requests",
    "failed": "failed",
    "prompt": "prompt_tokens",
    "tokens": "reply_tokens",
    "n": "rewards",
}
_ABOUT = {
    "reward": "reward_mean",
    "p50": "ttft_p50_ms",
    "p95": "ttft_p95_ms",
    "last50": "latency_p50_ms",
    "last95": "latency_p95_ms",
}


def _times(begins: float, span: str, now: dt.datetime) -> tuple[str, str]:
    """Return from when until when a point is, as far as it lies in the range and is over."""
    range_ = _stretch(span, now)
    ends = max(begins, range_["since"]), min(begins + range_["step"], range_["until"])
    since, until = (dt.datetime.fromtimestamp(one, dt.UTC).isoformat(timespec="seconds") for one in ends)
    return since, until


def _rounded(value: float | None) -> float | None:
    """Return a figure without digits that it does not have."""
    return None if value is None else float(f"{value:.4g}")
