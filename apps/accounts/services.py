"""Create people, tenants and memberships. Each act and its audit row are one transaction."""

import secrets
import uuid

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from apps.accounts.models import Membership, Role, Tenant, User
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound
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
        raise InvalidInput(f"{email!r} is not an email address", field="email") from error
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
    """Create a tenant. Raises `InvalidInput` for a slug that breaks its rule and
    `Conflict` for one that is taken.

    Needs the system scope, which alone sees whether the slug is taken.
    """
    tenant = Tenant(slug=slug, name=name or slug)
    try:
        tenant.clean_fields()
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        raise InvalidInput(f"tenant {field} {slug!r}: {' '.join(problems)}", field=field) from error
    taken = Conflict(f"there is already a tenant {slug!r}", field="slug")
    with transaction.atomic():
        if Tenant.objects.filter(slug=slug).exists():
            raise taken
        try:
            with transaction.atomic():
                tenant.save(force_insert=True)
        except IntegrityError:  # taken at this moment
            raise taken from None
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


def change_tenant(
    *, tenant_id: uuid.UUID, actor: str, name: str | None = None, training_enabled: bool | None = None
) -> Tenant:
    """Change a tenant's name, or whether its turns are trained on; None leaves a value as it is. Audited."""
    with tenant_scope(tenant_id), transaction.atomic():
        tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
        asked = {"name": name, "training_enabled": training_enabled}
        changed = {
            field: value
            for field, value in asked.items()
            if value is not None and value != getattr(tenant, field)
        }
        if changed:
            for field, value in changed.items():
                setattr(tenant, field, value)
            tenant.save(update_fields=list(changed))
            audit.record(
                actor=actor,
                action="tenant.change",
                target=f"tenant:{tenant.pk}",
                tenant_id=tenant_id,
                detail=changed,
            )
    return tenant


def change_role(*, tenant_id: uuid.UUID, membership_id: uuid.UUID, role: Role, actor: str) -> Membership:
    """Change what a member may do. Raises `Conflict` where nobody would be owner any more."""
    with tenant_scope(tenant_id), transaction.atomic():
        member = _member(membership_id, keeps_owning=role == Role.OWNER)
        if member.role != role:
            member.role = role
            member.save(update_fields=["role"])
            audit.record(
                actor=actor,
                action="member.change",
                target=f"user:{member.user_id}",
                tenant_id=tenant_id,
                detail={"role": role.value},
            )
    return member


def remove_member(*, tenant_id: uuid.UUID, membership_id: uuid.UUID, actor: str) -> None:
    """Take a person out of a tenant; Postgres revokes their keys with the membership, for good.

    Raises `Conflict` where nobody would be owner any more.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        member = _member(membership_id, keeps_owning=False)
        user_id = member.user_id
        member.delete()
        audit.record(actor=actor, action="member.remove", target=f"user:{user_id}", tenant_id=tenant_id)


def _member(membership_id: uuid.UUID, *, keeps_owning: bool) -> Membership:
    """Return a member, with all of the tenant's owners locked:
    two who leave at once cannot both be the last but one."""
    owners = list(Membership.objects.select_for_update(of=("self",)).filter(role=Role.OWNER).order_by("pk"))
    member = (
        Membership.objects.select_for_update(of=("self",))
        .select_related("user")
        .filter(pk=membership_id)
        .first()
    )
    if member is None:
        raise NotFound("there is no such member")
    if not keeps_owning and [one.pk for one in owners] == [member.pk]:
        raise Conflict("a tenant keeps at least one owner: make somebody else owner first", field="role")
    return member
