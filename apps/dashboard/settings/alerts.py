"""Who is told what: mails to owners and admins, and webhook endpoints with what was brought to them."""

import uuid

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.models import Membership
from apps.alerts import endpoints, services
from apps.alerts.addresses import URL_CHARACTERS
from apps.alerts.models import TOLD_OF, WebhookEndpoint
from apps.alerts.services import MAILED_TO
from apps.dashboard.lists import listed
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings.forms import complain
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access


class EndpointForm(InOurWords):
    """Where an endpoint is and what it is told of."""

    url = forms.CharField(max_length=URL_CHARACTERS, label="Address")
    events = forms.MultipleChoiceField(
        choices=[(event.value, event.label) for event in TOLD_OF], label="It is told that"
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def alerts(request: HttpRequest, place: Place) -> HttpResponse:
    """List endpoints; make one, whose secret this answer shows and nothing after it."""
    form = EndpointForm(request.POST if request.method == "POST" else None)
    made: tuple[WebhookEndpoint, str] | None = None
    if request.method == "POST" and form.is_valid():
        try:
            made = endpoints.create_endpoint(
                tenant_id=place.tenant.pk, actor=place.actor, **form.cleaned_data
            )
        except AttuneError as error:
            complain(form, error)
        else:
            form = EndpointForm()
    return place.show(
        request,
        "settings_alerts",
        section="settings",
        tab="alerts",
        form=form,
        made=made,
        endpoints=WebhookEndpoint.objects.order_by("created_at"),
        mailed=Membership.objects.filter(role__in=MAILED_TO, user__is_active=True).select_related("user"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def endpoint(request: HttpRequest, place: Place, endpoint_id: uuid.UUID) -> HttpResponse:
    """Show one endpoint and what was brought to it; change it, try it, or delete it."""
    row = WebhookEndpoint.objects.filter(pk=endpoint_id).first()
    if row is None:
        raise Http404
    form = EndpointForm(initial={"url": row.url, "events": row.events})
    secret = ""
    if request.method == "POST":
        wish = request.POST.get("wish", "")
        try:
            if wish == "change":
                form = EndpointForm(request.POST)
                if form.is_valid():
                    endpoints.change_endpoint(endpoint_id=row.pk, actor=place.actor, **form.cleaned_data)
                    messages.success(request, "Saved.")
            elif wish == "rotate":
                _, secret = endpoints.rotate_secret(endpoint_id=row.pk, actor=place.actor)
            else:
                _act(request, place, row, wish)
        except AttuneError as error:
            if wish == "change":
                complain(form, error)
            else:
                messages.error(request, error.message)
        if not secret and not form.errors:
            if _is_gone(row):
                return redirect("dashboard:alerts_settings", tenant=place.tenant.slug)
            return redirect("dashboard:endpoint", tenant=place.tenant.slug, endpoint_id=row.pk)
        row.refresh_from_db()
    return place.show(
        request,
        "settings_endpoint",
        section="settings",
        tab="alerts",
        endpoint=row,
        form=form,
        secret=secret,
        page=listed(request, row.deliveries.select_related("alert").prefetch_related("tries"), size=25),
    )


def _act(request: HttpRequest, place: Place, row: WebhookEndpoint, wish: str) -> None:
    if wish == "test":
        endpoints.send_test(endpoint_id=row.pk, actor=place.actor)
        messages.success(request, "A test is on its way.")
    elif wish in ("on", "off"):
        endpoints.change_endpoint(endpoint_id=row.pk, actor=place.actor, enabled=wish == "on")
        messages.success(request, "It is told again." if wish == "on" else "It is told nothing any more.")
    elif wish == "replay":
        services.replay(delivery_id=_delivery(request, row), actor=place.actor)
        messages.success(request, "It is tried again.")
    elif wish == "delete":
        if request.POST.get("sure") != "on":
            messages.error(request, "Say that you are sure: what was brought to it goes with it.")
            return
        endpoints.delete_endpoint(endpoint_id=row.pk, actor=place.actor)
        messages.success(request, "Deleted.")
    else:
        raise Http404


def _delivery(request: HttpRequest, row: WebhookEndpoint) -> uuid.UUID:
    try:
        found = row.deliveries.filter(pk=uuid.UUID(request.POST.get("delivery", ""))).first()
    except ValueError as error:
        raise Http404 from error
    if found is None:
        raise Http404
    return found.pk


def _is_gone(row: WebhookEndpoint) -> bool:
    return not WebhookEndpoint.objects.filter(pk=row.pk).exists()
