"""What a key, or all of the tenant's together, may ask: shown in words, and set by who manages."""

import uuid
from collections.abc import Mapping

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings.forms import complain
from apps.keys import services
from apps.keys.models import ApiKey, Limit
from apps.keys.selectors import with_roles
from apps.keys.tenant_limit import LABELS, NUMBERS, granted, own_limit, set_own_limit
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access


class LimitForm(InOurWords):
    """Three numbers, each within its bounds; an empty one is the platform's default."""

    def __init__(
        self,
        data: QueryDict | None,
        *,
        stored: Limit | None,
        defaults: Mapping[str, int],
        bounds: Mapping[str, int],
    ) -> None:
        super().__init__(data, initial={name: getattr(stored, name, None) for name in LABELS})
        for name, label in LABELS.items():
            default, most = defaults[NUMBERS[name]], bounds.get(NUMBERS[name], 0)
            said = [f"empty: the default of {default:,}" if default else "empty: no limit"]
            if not most:
                said.append("0: no limit")
            self.fields[name] = forms.IntegerField(
                min_value=1 if most else 0,
                max_value=most or services.LARGEST_LIMIT,
                required=False,
                label=f"{label}; {', '.join(said)}",
            )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def key_limits(request: HttpRequest, place: Place, key_id: uuid.UUID) -> HttpResponse:
    """Show what a key may ask; set it, from its next request on."""
    key = with_roles(ApiKey.objects.select_related("user", "limit")).filter(pk=key_id).first()
    if key is None or (request.method != "POST" and key.revoked_at is not None):
        raise Http404
    form = LimitForm(
        request.POST if request.method == "POST" else None,
        stored=getattr(key, "limit", None),
        defaults=settings.KEY_LIMITS,
        bounds={},
    )
    if form.is_bound and form.is_valid():
        try:
            services.set_limit(
                tenant_id=place.tenant.pk, key_id=key.pk, actor=place.actor, **form.cleaned_data
            )
        except AttuneError as error:
            complain(form, error)
        else:
            messages.success(request, f"The limits of {key} hold from its next request on.")
            return redirect("dashboard:keys", tenant=place.tenant.slug)
    return place.show(request, "key_limits", section="keys", key=key, form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def tenant_limits(request: HttpRequest, place: Place) -> HttpResponse:
    """Show what all keys of the tenant together may ask; set it, up to what the platform lets the tenant."""
    most = granted(place.tenant.pk)
    bounds = {short: getattr(most, short) for short in NUMBERS.values()}
    form = LimitForm(
        request.POST if request.method == "POST" else None,
        stored=own_limit(place.tenant.pk),
        defaults=bounds,
        bounds=bounds,
    )
    if form.is_bound and form.is_valid():
        try:
            set_own_limit(tenant_id=place.tenant.pk, actor=place.actor, numbers=form.cleaned_data)
        except AttuneError as error:
            complain(form, error)
        else:
            messages.success(request, "The limits hold from the next request on.")
            return redirect("dashboard:settings", tenant=place.tenant.slug)
    return place.show(request, "settings_limits", section="settings", form=form, bounded=any(bounds.values()))
