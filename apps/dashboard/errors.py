"""What stands in place of a page that cannot be shown: what happened, what to do next, and whom to tell.

What is shown where something broke asks the database for nothing: it may be what is broken.
"""

from http import HTTPStatus

from allauth.account.adapter import get_adapter
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template import loader
from django.utils import timezone
from django.views.decorators.csrf import requires_csrf_token

from apps.accounts.operators import operators_plain
from apps.dashboard.places import NotTheRole
from kernel.request_ids import id_of
from kernel.rest.caller import Access
from kernel.rest.problems import MEDIA_TYPE

_WHO = {
    Access.TALK: "its members, admins and owners",
    Access.MANAGE: "its admins and owners",
    Access.OWN: "its owners",
}


@requires_csrf_token
def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say why somebody may not do this, and what they can do about it."""
    if isinstance(exception, NotTheRole):
        context = {"place": exception.place, "who": _WHO[exception.needs]}
        return render(request, "403.html", context | _told(request), status=403)
    if _has_nothing_to_be_asked_for(request):
        return render(request, "account/nothing_to_ask_for.html", _told(request), status=403)
    context = {"console": request.path.startswith("/console/")}
    return render(request, "403.html", context | _told(request), status=403)


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that a form was not taken because it did not come from a page of this
    site, as far as can be told."""
    del reason  # it is in the log
    return render(request, "403_csrf.html", _told(request), status=403)


def broke(request: HttpRequest) -> HttpResponse:
    """Say that something broke here, in the caller's format; made of nothing that may be what broke."""
    if request.path.startswith("/api/"):
        named = id_of(request)
        detail = (
            "Something broke here, and is in the log. Ask again in a minute; if it happens again, tell"
            f" {operators_plain()} the request's id: {named}."
        )
        problem = {
            "type": "about:blank",
            "title": HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
            "status": 500,
            "code": "internal",
            "detail": detail,
            "request_id": named,
        }
        return JsonResponse(problem, status=500, content_type=MEDIA_TYPE)
    again = request.get_full_path() if request.method == "GET" else ""
    return HttpResponse(loader.get_template("500.html").render(_told(request) | {"again": again}), status=500)


def _told(request: HttpRequest) -> dict[str, object]:
    """Return what somebody who is told of it needs to find it."""
    return {"request_id": id_of(request), "at": timezone.now()}


def _has_nothing_to_be_asked_for(request: HttpRequest) -> bool:
    """Whether it is an account's own page, which asks who it is once more,
    and there is nothing to ask for."""
    if not request.path.startswith("/accounts/") or not request.user.is_authenticated:
        return False
    return not get_adapter(request).get_reauthentication_methods(request.user)
