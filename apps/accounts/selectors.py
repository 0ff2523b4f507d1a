"""Read people, tenants and memberships."""

from apps.accounts.models import Membership, Tenant, User
from kernel.errors import NotFound
from kernel.tenancy import system_scope


def tenant_by_slug(slug: str) -> Tenant:
    """Return a tenant, or raise `NotFound`. Needs the system scope."""
    try:
        return Tenant.objects.get(slug=slug)
    except Tenant.DoesNotExist as error:
        raise NotFound(f"there is no tenant {slug!r}", field="tenant") from error


def user_by_email(email: str) -> User:
    """Return a person, or raise `NotFound`."""
    try:
        return User.objects.get(email=email.strip().lower())
    except User.DoesNotExist as error:
        raise NotFound(f"nobody has the address {email}", field="user") from error


def memberships_of(user: User) -> list[Membership]:
    """Return the tenants a person belongs to, oldest membership first.

    The one look-up that must come before a tenant is known, hence under the system scope; it filters
    by the person, who has been authenticated.
    """
    with system_scope("which tenants does this person belong to"):
        return list(
            Membership.objects.filter(user=user).select_related("tenant").order_by("created_at", "id")
        )
