"""Where in whose tenant a page stands: every page of a tenant has the tenant's slug in its address."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from apps.accounts.models import Membership, Tenant, User
from apps.accounts.selectors import memberships_of
from apps.keys.rest import ACCESS
from kernel.rest.caller import Access
from kernel.tenancy import tenant_scope

Page = Callable[..., HttpResponseBase]


class NotTheRole(PermissionDenied):
    """Somebody's role in a tenant does not allow what they asked for;
    the page in its place says whose does."""

    def __init__(self, place: "Place", needs: Access) -> None:
        super().__init__(f"this needs the access {needs.name.lower()}")
        self.place, self.needs = place, needs


@dataclass(frozen=True, slots=True)
class Place:
    """A signed-in person in one of their tenants."""

    membership: Membership
    memberships: list[Membership]

    @property
    def tenant(self) -> Tenant:
        """The tenant."""
        return self.membership.tenant

    @property
    def user(self) -> User:
        """The person."""
        return self.membership.user

    @property
    def access(self) -> Access:
        """How much they may see and change."""
        return ACCESS[self.membership.role]

    @property
    def actor(self) -> str:
        """How audit rows name them."""
        return f"user:{self.membership.user_id}"

    @property
    def talks(self) -> bool:
        """Whether conversations and keys are theirs to see."""
        return self.access >= Access.TALK

    @property
    def manages(self) -> bool:
        """Whether the tenant is theirs to change."""
        return self.access >= Access.MANAGE

    @property
    def owns(self) -> bool:
        """Whether who belongs to the tenant is theirs to change."""
        return self.access >= Access.OWN

    @property
    def may_found(self) -> bool:
        """Whether they may make a tenant of their own: where sign-up is open, everybody may."""
        return bool(settings.SIGNUP_OPEN)

    def require(self, needs: Access) -> None:
        """Raise NotTheRole unless they have at least this access."""
        if self.access < needs:
            raise NotTheRole(self, needs)

    def show(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        """Return a page of the dashboard; `section` in the context marks the place in the navigation."""
        return render(request, f"dashboard/{template}.html", {"place": self, **context})


def place_of(user: User, slug: str) -> Place:
    """Return the person's place in a tenant; raise Http404 for one that is not theirs."""
    memberships = memberships_of(user)
    for membership in memberships:
        if membership.tenant.slug == slug:
            membership.user = user
            return Place(membership, memberships)
    raise Http404


def tenant_page(needs: Access = Access.VIEW) -> Callable[[Page], Page]:
    """Make `view(request, place, …)` a page of `/t/<tenant>/`:
    signed in, a member, with enough access, in its scope."""

    def page(view: Page) -> Page:
        @login_required
        @wraps(view)
        def entered(request: HttpRequest, tenant: str, **named: Any) -> HttpResponseBase:
            assert isinstance(request.user, User)  # noqa: S101  # login_required saw to it
            place = place_of(request.user, tenant)
            place.require(needs)
            with tenant_scope(place.tenant.pk):
                return view(request, place, **named)

        @never_cache
        @wraps(view)
        def shown(request: HttpRequest, tenant: str, **named: Any) -> HttpResponseBase:
            # a piece that a page asks for has no room for the page to sign in at
            if (
                request.method == "GET"
                and "HX-Request" in request.headers
                and not request.user.is_authenticated
            ):
                return HttpResponse(status=401)
            return entered(request, tenant, **named)

        return shown

    return page
