"""Making one more tenant, and leaving one."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import services
from apps.accounts.models import Membership, Role, Tenant, User
from apps.accounts.selectors import memberships_of
from apps.dashboard.entrance import found_tenant
from apps.dashboard.places import Place, tenant_page
from apps.keys.selectors import working_keys
from kernel.errors import AttuneError, Conflict
from kernel.refusals import InOurWords
from kernel.tenancy import system_scope

MOST_OWNED = 20
"""Tenants that one person owns: each has its share of engines and trainers."""


class NewTenantForm(InOurWords):
    """What it is called."""

    name = forms.CharField(max_length=120, label="Name")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_tenant(request: HttpRequest) -> HttpResponse:
    """Make a tenant that the person owns, where sign-up is open to everybody."""
    user: Any = request.user
    form = NewTenantForm(request.POST if request.method == "POST" else None)
    is_open = bool(settings.SIGNUP_OPEN)
    if request.method == "POST" and is_open and form.is_valid():
        try:
            made = found_another(user, form.cleaned_data["name"])
        except AttuneError as error:
            form.add_error(None, error.message)
        else:
            return redirect("dashboard:overview", tenant=made.slug)
    context = {"form": form, "open": is_open, "memberships": memberships_of(user)}
    return render(request, "dashboard/tenant_new.html", context, status=200 if is_open else 403)


def found_another(user: User, name: str) -> Tenant:
    """Make a tenant with a first policy that the person owns. Raises Conflict where they own `MOST_OWNED`."""
    with transaction.atomic():
        with system_scope("how many tenants somebody owns"):
            User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two at once: one after the other
            owned = Membership.objects.filter(user=user, role=Role.OWNER).count()
        if owned >= MOST_OWNED:
            raise Conflict(
                f"You own {MOST_OWNED} tenants, which is the most. Make somebody else owner of one, then leave it."
            )
        return found_tenant(user, name)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def leave(request: HttpRequest, place: Place) -> HttpResponse:
    """Say what it means to leave the tenant, and leave it; the last owner stays."""
    if request.method == "POST":
        try:
            services.remove_member(
                tenant_id=place.tenant.pk, membership_id=place.membership.pk, actor=place.actor
            )
        except AttuneError as error:
            messages.error(request, error.message)
            return redirect("dashboard:leave", tenant=place.tenant.slug)
        messages.success(request, f"You have left {place.tenant.name}.")
        return redirect("dashboard:home")
    owners = Membership.objects.filter(role=Role.OWNER)
    return place.show(
        request,
        "leave",
        section="settings",
        n_keys=working_keys(place.user.pk).count(),
        is_last_owner=place.owns and owners.count() == 1,
    )
