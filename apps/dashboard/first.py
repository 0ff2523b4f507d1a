"""The first request of a tenant: the page that asked for it turns over by itself when it lands."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from apps.conversations.models import Turn, TurnState
from apps.dashboard import live
from apps.dashboard.places import Place, tenant_page


def first_request(place: Place) -> dict[str, Any]:
    """Return what the pieces of the first page are made of.

    `landed` is the tenant's oldest turn, or None while nothing was asked, `asked_before` whether that has
    ended, `readable` whether its session is this person's to read.
    """
    landed = Turn.objects.select_related("session", "version").order_by("created_at", "id").first()
    return {
        "api_base": settings.API_BASE,
        "landed": landed,
        "asked_before": landed is not None and landed.state != TurnState.PENDING,
        "readable": landed is not None and (place.manages or landed.session.user_id == place.user.pk),
    }


@require_safe
@tenant_page()
def first(request: HttpRequest, place: Place) -> StreamingHttpResponse:
    """Follow the tenant's first request, from before it came until it was answered."""

    def piece() -> tuple[str, bool]:
        seen = first_request(place)
        return render_to_string("dashboard/_landed.html", {"place": place, **seen}), seen["asked_before"]

    return live.stream(request, place, piece=piece)
