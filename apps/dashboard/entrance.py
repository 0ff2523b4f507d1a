"""Coming in: signing up with a tenant of one's own, or by an invitation into somebody's."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.validators import validate_slug
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import invitations
from apps.accounts.adapter import INVITED
from apps.accounts.models import Role, Tenant, User
from apps.accounts.services import create_tenant, set_role
from apps.adapters.services import create_policy
from kernel.errors import AttuneError, Conflict
from kernel.ids import uuid7
from kernel.refusals import InOurWords
from kernel.tenancy import system_scope, tenant_scope

FIRST_POLICY = "default"


class NewTenant(InOurWords):
    """What a new account is asked beside address and password; allauth calls `signup` in the end."""

    organisation = forms.CharField(
        max_length=120,
        required=False,
        label="Name of your team or yourself",
        help_text="What your conversations, keys and adapters will stand under.",
    )

    def signup(self, request: HttpRequest, user: User) -> None:
        """Give the new account its place."""
        enter(request, user, self.cleaned_data["organisation"].strip())


def enter(request: HttpRequest, user: User, organisation: str) -> None:
    """Let a new account join the tenant of the invitation that the browser came with, or make one."""
    token = request.session.pop(INVITED, "")
    if token and invitations.find(token) is not None:
        try:
            invitations.accept(token=token, user=user)
        except Conflict as error:
            messages.warning(request, error.message)
        else:
            return
    found_tenant(user, organisation)


def found_tenant(user: User, name: str) -> Tenant:
    """Make a tenant with a first policy that the person owns; its slug is made of the name."""
    name = name or user.email.partition("@")[0]
    actor = f"user:{user.pk}"
    with transaction.atomic():
        with system_scope("a slug that nobody has yet"):
            slug = _free_slug(name)
            try:
                tenant = create_tenant(slug=slug, name=name, actor=actor)
            except Conflict:  # somebody took it at this moment
                tenant = create_tenant(slug=_another(slug), name=name, actor=actor)
        set_role(tenant_id=tenant.pk, user=user, role=Role.OWNER, actor=actor)
        with tenant_scope(tenant.pk):
            create_policy(tenant=tenant, name=FIRST_POLICY, actor=actor)
    return tenant


def _free_slug(name: str) -> str:
    slug = slugify(name)[:30].strip("-_").replace("_", "-") or "team"
    if not slug[0].isalpha():
        slug = f"t-{slug}"
    validate_slug(slug)
    if not Tenant.objects.filter(slug=slug).exists():
        return slug
    return _another(slug)


def _another(slug: str) -> str:
    return f"{slug}-{uuid7().hex[-6:]}"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show who asks whom to join what; joining is a button for who has signed in."""
    found = invitations.find(token)
    user: Any = request.user
    if found is None:
        joined = invitations.joined_by(token, user) if user.is_authenticated else None
        if joined is not None:
            return redirect("dashboard:overview", tenant=joined.tenant.slug)
        return render(request, "dashboard/invitation.html", {"found": None}, status=404)
    if not request.user.is_authenticated:
        request.session[INVITED] = token
    if request.method == "POST":
        return _join(request, token)
    return render(request, "dashboard/invitation.html", {"found": found, "token": token})


@login_required
def _join(request: HttpRequest, token: str) -> HttpResponse:
    user: Any = request.user
    try:
        membership = invitations.accept(token=token, user=user)
    except AttuneError as error:
        messages.error(request, error.message)
        return redirect("dashboard:home")
    return redirect("dashboard:overview", tenant=membership.tenant.slug)
