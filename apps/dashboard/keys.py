"""Keys: made and shown once, handed over with an overlap, ended at once."""

import datetime as dt
import uuid

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from apps.adapters.models import Policy
from apps.dashboard.first import first_request
from apps.dashboard.lists import listed
from apps.dashboard.places import Place, tenant_page
from apps.keys import services
from apps.keys.models import LONGEST_NAME, ApiKey, KeyScope
from apps.keys.selectors import with_roles
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access

USUAL_OVERLAP = "86400"
OVERLAPS = {"0": "at once", "3600": "in an hour", "86400": "in a day", "604800": "in a week"}
SCOPES = {
    KeyScope.CHAT: "chat, and say what one thinks of replies",
    KeyScope.READ: "read under /api what its person may read, of the policies below where some are ticked",
    KeyScope.MANAGE: "change things under /api",
    KeyScope.ROLLOUT: "chat as an environment: many turns, slowed down when training lags",
    KeyScope.EVALUATE: "name a version that is not live, as default@12",
}


class NewKey(InOurWords):
    """A key to be made."""

    name = forms.CharField(max_length=LONGEST_NAME, label="Name", help_text="Where it is used: laptop, ci …")
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in SCOPES],
        initial=[KeyScope.CHAT.value],
        label="It may",
        widget=forms.CheckboxSelectMultiple,
    )
    policies = forms.TypedMultipleChoiceField(
        coerce=uuid.UUID, required=False, label="Only these policies", widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(min_value=1, max_value=3650, required=False, label="Ends after (days)")

    def __init__(self, policies: QuerySet[Policy], data: QueryDict | None = None) -> None:
        super().__init__(data)
        field = self.fields["policies"]
        assert isinstance(field, forms.TypedMultipleChoiceField)  # noqa: S101  # as above
        field.choices = [(str(policy.pk), policy.name) for policy in policies]


def _keys(place: Place) -> QuerySet[ApiKey]:
    """Return the keys that a person may see and end: their own, or everybody's for who manages the tenant."""
    rows = with_roles(ApiKey.objects.select_related("user", "limit").prefetch_related("policies__policy"))
    return rows if place.manages else rows.filter(user_id=place.user.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def keys(request: HttpRequest, place: Place) -> HttpResponse:
    """List keys; make one, which this answer shows and nothing after it."""
    form = NewKey(_policies(), request.POST if request.method == "POST" else None)
    made: tuple[ApiKey, str] | None = None
    if request.method == "POST" and form.is_valid():
        days = form.cleaned_data["days"]
        try:
            made = services.create_key(
                tenant=place.tenant,
                user=place.user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=timezone.now() + dt.timedelta(days=days) if days else None,
                policies=form.cleaned_data["policies"] or None,
                actor=place.actor,
            )
        except AttuneError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            form = NewKey(_policies())
    return _page(request, place, form, made)


def _page(request: HttpRequest, place: Place, form: NewKey, made: tuple[ApiKey, str] | None) -> HttpResponse:
    return place.show(
        request,
        "keys",
        section="keys",
        page=listed(request, _keys(place)),
        form=form,
        made=made,
        policies=list(_policies()),
        scopes=[(scope.value, words) for scope, words in SCOPES.items()],
        **first_request(place),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def rotate(request: HttpRequest, place: Place, key_id: uuid.UUID) -> HttpResponse:
    """Ask when a key shall end; make its successor, which this answer shows and nothing after it."""
    key = _seen(place, key_id)
    if request.method != "POST":
        ended = key.revoked_at is not None or key.successor_id is not None
        if ended or key.user_id != place.user.pk:
            raise Http404
        return place.show(
            request, "key_rotate", section="keys", key=key, overlaps=OVERLAPS.items(), usual=USUAL_OVERLAP
        )
    overlap = request.POST.get("overlap", "")
    if overlap not in OVERLAPS:
        raise Http404
    try:
        made = services.rotate_key(
            tenant_id=place.tenant.pk,
            key_id=key_id,
            user_id=place.user.pk,
            actor=place.actor,
            overlap_s=float(overlap),
        )
    except AttuneError as error:
        messages.error(request, error.message)
        return redirect("dashboard:keys", tenant=place.tenant.slug)
    return _page(request, place, NewKey(_policies()), made)


@require_POST
@tenant_page(needs=Access.TALK)
def limit(request: HttpRequest, place: Place, key_id: uuid.UUID) -> HttpResponse:
    """Limit a key to the policies that are ticked; none ticked is no limit, which has to be said."""
    _seen(place, key_id)
    try:
        chosen = [uuid.UUID(one) for one in request.POST.getlist("policies")]
    except ValueError as error:
        raise Http404 from error
    if not chosen and request.POST.get("all") != "on":
        messages.error(request, "Tick the policies that the key may name, or that it may name all.")
        return redirect("dashboard:keys", tenant=place.tenant.slug)
    try:
        key = services.set_policies(
            tenant_id=place.tenant.pk,
            key_id=key_id,
            policies=None if request.POST.get("all") == "on" else chosen,
            actor=place.actor,
        )
    except AttuneError as error:
        messages.error(request, error.message)
    else:
        which = "only these policies" if key.some_policies else "every policy"
        messages.success(request, f"From its next request on {key} may name {which}.")
    return redirect("dashboard:keys", tenant=place.tenant.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def revoke(request: HttpRequest, place: Place, key_id: uuid.UUID) -> HttpResponse:
    """Say what ends with a key; end it."""
    key = _seen(place, key_id)
    if request.method != "POST":
        if key.revoked_at is not None:
            raise Http404
        return place.show(request, "key_revoke", section="keys", key=key)
    key = services.revoke_key(tenant_id=place.tenant.pk, key_id=key_id, actor=place.actor)
    messages.success(request, f"{key} is revoked: the next request with it is refused.")
    return redirect("dashboard:keys", tenant=place.tenant.slug)


def _policies() -> QuerySet[Policy]:
    return Policy.objects.order_by("name")


def _seen(place: Place, key_id: uuid.UUID) -> ApiKey:
    key = _keys(place).filter(pk=key_id).first()
    if key is None:
        raise Http404
    return key
