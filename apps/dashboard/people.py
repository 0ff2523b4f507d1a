"""Who belongs to the tenant, and how it learns."""

import uuid

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts import invitations, services
from apps.accounts.models import Invitation, Membership, Role
from apps.adapters.models import Policy
from apps.adapters.selectors import with_version_counts
from apps.dashboard.lists import listed
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings.policies import preset_named
from apps.keys.selectors import n_held_back, working_keys
from apps.keys.tenant_limit import holding, in_words
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access


class TenantForm(InOurWords):
    """What the tenant is called, and whether it learns."""

    name = forms.CharField(max_length=120)
    training_enabled = forms.BooleanField(required=False)


@require_safe
@tenant_page(needs=Access.TALK)
def members(request: HttpRequest, place: Place) -> HttpResponse:
    """List who belongs to the tenant."""
    return _members(request, place)


def _members(request: HttpRequest, place: Place) -> HttpResponse:
    return place.show(
        request,
        "members",
        section="members",
        page=listed(request, Membership.objects.select_related("user")),
        roles=Role.choices,
        invitations=Invitation.objects.filter(accepted_at=None)
        .annotate(stands=invitations.stands())
        .order_by("-created_at")
        if place.manages
        else [],
        now=timezone.now(),
        typed=request.POST,
        older_at=reverse("dashboard:members", kwargs={"tenant": place.tenant.slug}),
    )


@require_POST
@tenant_page(needs=Access.MANAGE)
def invite(request: HttpRequest, place: Place) -> HttpResponse:
    """Ask somebody to join. Only an owner makes owners."""
    role = request.POST.get("role", "")
    if role not in Role.values or (role == Role.OWNER and not place.owns):
        raise Http404
    link = request.build_absolute_uri(reverse("dashboard:invitation", kwargs={"token": "TOKEN"}))
    try:
        invitation = invitations.invite(
            tenant=place.tenant,
            email=request.POST.get("email", ""),
            role=Role(role),
            inviter=place.user,
            link=link.replace("TOKEN", "{token}"),
        )
    except AttuneError as error:
        messages.error(request, error.message)
        return _members(request, place)  # with what was typed
    messages.success(request, f"A mail is on its way to {invitation.email}.")
    return redirect("dashboard:members", tenant=place.tenant.slug)


@require_POST
@tenant_page(needs=Access.MANAGE)
def uninvite(request: HttpRequest, place: Place, invitation_id: uuid.UUID) -> HttpResponse:
    """Take an invitation back."""
    try:
        invitations.take_back(tenant_id=place.tenant.pk, invitation_id=invitation_id, actor=place.actor)
    except AttuneError as error:
        raise Http404 from error
    return redirect("dashboard:members", tenant=place.tenant.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.OWN)
def member(request: HttpRequest, place: Place, membership_id: uuid.UUID) -> HttpResponse:
    """Change what a member may do; say what it means to take them out, and do it."""
    if request.method != "POST":
        return _before_they_go(request, place, membership_id)
    wish = request.POST.get("wish", "")
    try:
        if wish == "remove":
            services.remove_member(tenant_id=place.tenant.pk, membership_id=membership_id, actor=place.actor)
            messages.success(request, "Taken out. Their keys are revoked.")
        elif request.POST.get("role") in Role.values:
            messages.success(request, _role_changed(place, membership_id, Role(request.POST["role"])))
        else:
            raise Http404
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
    return redirect("dashboard:members", tenant=place.tenant.slug)


def _role_changed(place: Place, membership_id: uuid.UUID, role: Role) -> str:
    """Change what a member may do; return what that means, for their keys too."""
    row = Membership.objects.filter(pk=membership_id).first()
    before = n_held_back(row.user_id) if row is not None else 0
    changed = services.change_role(
        tenant_id=place.tenant.pk, membership_id=membership_id, role=role, actor=place.actor
    )
    after = n_held_back(changed.user_id)
    if after:
        keys = "1 key of theirs has" if after == 1 else f"{after} keys of theirs have"
        return f"Changed. {keys} scopes that a {role.value} is not given: they do not count from now on."
    if before:
        keys = "1 key of theirs has" if before == 1 else f"{before} keys of theirs have"
        return f"Changed. {keys} scopes that count again: revoke under Keys what should not work."
    return "Changed."


def _before_they_go(request: HttpRequest, place: Place, membership_id: uuid.UUID) -> HttpResponse:
    row = Membership.objects.select_related("user").filter(pk=membership_id).first()
    if row is None:
        raise Http404
    n_keys = working_keys(row.user_id).count()
    return place.show(request, "member_out", section="members", member=row, n_keys=n_keys)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def settings(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the tenant and its policies; change the tenant's name, or whether it learns."""
    now = {"name": place.tenant.name, "training_enabled": place.tenant.training_enabled}
    form = TenantForm(initial=now)
    if request.method == "POST":
        place.require(Access.MANAGE)
        form = TenantForm(request.POST)
        if form.is_valid():
            services.change_tenant(tenant_id=place.tenant.pk, actor=place.actor, **form.cleaned_data)
            messages.success(request, "Saved.")
            return redirect("dashboard:settings", tenant=place.tenant.slug)
        messages.error(request, str(form.errors["name"][0]))
    policies = list(with_version_counts(Policy.objects.order_by("name")))
    for policy in policies:
        policy.preset = preset_named(policy)  # type: ignore[attr-defined]
    return place.show(
        request,
        "settings",
        section="settings",
        tab="all",
        form=form,
        policies=policies,
        all_keys=in_words(holding(place.tenant.pk)),
    )
