"""Pages for the people of a tenant."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.models import User
from apps.accounts.selectors import memberships_of
from apps.dashboard.selectors import overview_of


@never_cache
@require_safe
@login_required
def overview(request: HttpRequest) -> HttpResponse:
    """Show one of the person's tenants: the oldest, or the one that `?tenant=` names."""
    assert isinstance(request.user, User)  # noqa: S101  # login_required saw to it
    memberships = memberships_of(request.user)
    wanted = request.GET.get("tenant")
    chosen = [one for one in memberships if wanted in (None, one.tenant.slug)]
    if wanted is not None and not chosen:
        raise Http404
    context: dict[str, object] = {"memberships": memberships, "api_base": settings.API_BASE}
    if chosen:
        context |= {"membership": chosen[0], "overview": overview_of(chosen[0])}
    return render(request, "dashboard/overview.html", context)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Say whether this process can serve: it answers and so does its database."""
    del request
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok"})
