"""Create people, tenants and memberships. Each act and its audit row are one transaction."""

import secrets
import uuid

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from apps.accounts.models import Membership, Role, Tenant, User
from kernel import audit
from kernel.errors import Conflict, InvalidInput
from kernel.tenancy import tenant_scope


def new_password() -> str:
    """Return a random password of 128 bits that can be typed."""
    return secrets.token_urlsafe(16)


def create_user(*, email: str, password: str | None, operator: bool, actor: str) -> User:
    """Create a person whose address counts as verified; an operator may enter the console.

    Needs the system scope: a person belongs to no tenant yet. Raises `InvalidInput` for what is not
    an address and `Conflict` for one that is taken.
    """
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError as error:
        raise InvalidInput(f"{email!r} is not an e-mail address", field="email") from error
    with transaction.atomic():
        if User.objects.filter(email=address).exists():
            raise Conflict(f"{address} already has an account", field="email")
        make = User.objects.create_superuser if operator else User.objects.create_user
        user = make(address, password)
        EmailAddress.objects.create(user=user, email=address, verified=True, primary=True)
        audit.record(
            actor=actor,
            action="user.create",
            target=f"user:{user.pk}",
            tenant_id=None,
            detail={"email": address, "operator": operator},
        )
    return user


def set_password(*, user: User, password: str, actor: str) -> None:
    """Give a person another password, which also ends their sessions. Needs the system scope."""
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        audit.record(actor=actor, action="user.set_password", target=f"user:{user.pk}", tenant_id=None)


def create_tenant(*, slug: str, name: str, actor: str) -> Tenant:
    """Create a tenant. Raises `InvalidInput` for a slug that breaks its rule and `Conflict` for one that is taken.

    Needs the system scope, which alone sees whether the slug is taken.
    """
    tenant = Tenant(slug=slug, name=name or slug)
    try:
        tenant.clean_fields()
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        raise InvalidInput(f"tenant {field} {slug!r}: {' '.join(problems)}", field=field) from error
    with transaction.atomic():
        if Tenant.objects.filter(slug=slug).exists():
            raise Conflict(f"there is already a tenant {slug!r}", field="slug")
        tenant.save(force_insert=True)
        audit.record(actor=actor, action="tenant.create", target=f"tenant:{tenant.pk}", tenant_id=tenant.pk)
    return tenant


def set_role(*, tenant_id: uuid.UUID, user: User, role: Role, actor: str) -> Membership:
    """Make a person a member of a tenant, or change what they may do in it."""
    with tenant_scope(tenant_id), transaction.atomic():
        membership, created = Membership.objects.update_or_create(
            tenant_id=tenant_id, user=user, defaults={"role": role}
        )
        audit.record(
            actor=actor,
            action="member.add" if created else "member.change",
            target=f"user:{user.pk}",
            tenant_id=tenant_id,
            detail={"role": role.value},
        )
    return membership
