"""Who asks under /api: a key, or a person who has signed in to the pages."""

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from apps.accounts.models import Membership, Role, User
from apps.accounts.selectors import memberships_of
from apps.keys.models import KeyScope
from apps.keys.services import authenticate
from kernel.errors import NotFound, Unauthenticated
from kernel.rest.caller import Access, RestCaller
from kernel.tenancy import tenant_scope

ACCESS = {
    Role.VIEWER.value: Access.VIEW,
    Role.MEMBER.value: Access.TALK,
    Role.ADMIN.value: Access.MANAGE,
    Role.OWNER.value: Access.OWN,
}
TENANT_HEADER = "X-Tenant"


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer at-…`; the key needs the scope `read` to look and `manage` to change."""

    def authenticate(self, request: Request) -> tuple[User, RestCaller] | None:
        """Return the key's user and what they may do, or None where there is no such header."""
        header = request.headers.get("Authorization")
        if header is None:
            return None
        caller = authenticate(header)
        manages = KeyScope.MANAGE.value in caller.scopes
        if not manages:
            caller.require(KeyScope.READ)
        with tenant_scope(caller.tenant_id):
            membership = Membership.objects.select_related("user").filter(user_id=caller.user_id).first()
        if membership is None:  # taken out since the key was looked up
            raise Unauthenticated("The API key is revoked or expired.", code="invalid_api_key")
        return membership.user, RestCaller(
            tenant_id=caller.tenant_id,
            user_id=caller.user_id,
            access=ACCESS[membership.role],
            actor=caller.actor,
            may_write=manages,
            policies=caller.policies,
        )

    def authenticate_header(self, request: Request) -> str:
        """Return what a 401 asks for."""
        del request
        return "Bearer"


class BrowserAuthentication(SessionAuthentication):
    """A signed-in person; `X-Tenant` (or `?tenant=`) names one of their tenants, else it is their oldest."""

    def authenticate(self, request: Request) -> tuple[User, RestCaller] | None:
        """Return the person and what they may do, or None where nobody has signed in."""
        found = super().authenticate(request)
        if found is None:
            return None
        user = found[0]
        assert isinstance(user, User)  # noqa: S101  # the model that the settings name
        membership = chosen(user, named_tenant(request))
        return user, RestCaller(
            tenant_id=membership.tenant_id,
            user_id=user.pk,
            access=ACCESS[membership.role],
            actor=f"user:{user.pk}",
        )


def named_tenant(request: HttpRequest | Request) -> str | None:
    """Return the slug of the tenant that a request names, or None."""
    return request.headers.get(TENANT_HEADER) or request.GET.get("tenant")


def chosen(user: User, slug: str | None) -> Membership:
    """Return the membership in the named tenant, or the oldest; raise NotFound for a tenant that is not theirs."""
    for membership in memberships_of(user):
        if slug in (None, membership.tenant.slug):
            return membership
    raise NotFound("You belong to no such tenant.", field=TENANT_HEADER)
