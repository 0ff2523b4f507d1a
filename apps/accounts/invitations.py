"""Ask somebody by email to join a tenant: a link that works once, for that address, for a week."""

import datetime as dt
import hashlib
import secrets
import uuid

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from apps.accounts import mails
from apps.accounts.models import Invitation, Membership, Role, Tenant, User
from kernel import audit
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from kernel.tenancy import system_scope, tenant_scope

VALID_FOR = dt.timedelta(days=7)
LONGEST_ADDRESS = 254
MOST_OPEN = 100  # open invitations of a tenant: mail is not for flooding


def invite(*, tenant: Tenant, email: str, role: Role, inviter: User, link: str) -> Invitation:
    """Write to somebody with a link to join; asked again, the old link ends and a new one is sent.

    `link` holds `{token}`. Raises `InvalidInput` for what is not an address, `Conflict` for a member,
    `Forbidden` for an inviter who may not: an admin asks nobody in as owner.
    """
    address = email.strip().lower()
    if len(address) > LONGEST_ADDRESS:
        raise InvalidInput(f"An email address has at most {LONGEST_ADDRESS} characters.", field="email")
    try:
        validate_email(address)
    except ValidationError as error:
        raise InvalidInput(f"{email!r} is not an email address", field="email") from error
    token = secrets.token_urlsafe(32)
    with tenant_scope(tenant.pk), transaction.atomic():
        # two who invite at once: one after the other
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        if not _may_ask(inviter=inviter.pk, role=role):
            raise Forbidden(f"You may ask nobody in as {role.value}. An owner may.", field="role")
        if Membership.objects.filter(user__email=address).exists():
            raise Conflict(f"{address} is a member already", field="email")
        others = Invitation.objects.filter(stands(), accepted_at=None).exclude(email=address)
        if others.count() >= MOST_OPEN:
            raise Conflict(f"{MOST_OPEN} invitations are open: take some back first")
        invitation, _ = Invitation.objects.update_or_create(
            email=address,
            accepted_at=None,
            defaults={
                "role": role,
                "inviter": inviter,
                "token_sha256": _hash(token),
                "expires_at": timezone.now() + VALID_FOR,
            },
        )
        audit.record(
            actor=f"user:{inviter.pk}",
            action="member.invite",
            target=f"invitation:{invitation.pk}",
            tenant_id=tenant.pk,
            detail={"email": address, "role": role.value},
        )
        mails.post(
            kind="invitation",
            to=address,
            subject=f"{_line(tenant.name)} on Attune",
            text=f"{inviter.email} asks you to join {_line(tenant.name)} as {role.label.lower()}.\n\n"
            f"{link.format(token=token)}\n\n"
            f"The link works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC.\n",
            lasts=VALID_FOR,
        )
    return invitation


def stands() -> Q:
    """Return the condition that whoever asked may still ask somebody in as that.

    An inviter who is no longer of the tenant, or may less than then, lets nobody in: not themselves either,
    by another address.
    """
    asks = Membership.objects.filter(
        tenant=OuterRef("tenant"), user=OuterRef("inviter"), user__is_active=True
    )
    return Q(Exists(asks.filter(role=Role.OWNER))) | (
        ~Q(role=Role.OWNER) & Q(Exists(asks.filter(role=Role.ADMIN)))
    )


def _may_ask(*, inviter: uuid.UUID, role: Role) -> bool:
    """Whether a person may ask somebody into the tenant of the scope as that; `stands` says it of a row."""
    roles = [Role.OWNER] if role == Role.OWNER else [Role.OWNER, Role.ADMIN]
    return Membership.objects.filter(user_id=inviter, role__in=roles).exists()


def find(token: str) -> Invitation | None:
    """Return the open invitation that a link names, or None where it has ended.

    The token comes before any tenant is known, hence the system scope; it is compared by its hash.
    """
    with system_scope("whose invitation is this"):
        return (
            Invitation.objects.select_related("tenant", "inviter")
            .filter(stands(), token_sha256=_hash(token), accepted_at=None, expires_at__gt=timezone.now())
            .first()
        )


def accept(*, token: str, user: User) -> Membership:
    """Make the person a member; the same again, or twice at once, returns the membership.

    Raises `NotFound` for a link that has ended, `Conflict` for somebody else's address.
    """
    invitation = find(token)
    if invitation is None:
        return _joined_before(token, user)
    with tenant_scope(invitation.tenant_id), transaction.atomic():
        held = Invitation.objects.select_for_update(of=("self",))
        # asked again meanwhile, the old link has ended
        row = held.filter(stands(), token_sha256=_hash(token), accepted_at=None).first()
        if row is None:
            return _joined_before(token, user)
        if row.email != user.email.lower():
            raise Conflict(f"this invitation is for {row.email}, and you are {user.email}")
        membership, created = Membership.objects.get_or_create(user=user, defaults={"role": row.role})
        row.accepted_at = timezone.now()
        row.save(update_fields=["accepted_at"])
        if created:
            audit.record(
                actor=f"user:{user.pk}",
                action="member.join",
                target=f"user:{user.pk}",
                tenant_id=row.tenant_id,
                detail={"role": row.role},
            )
        return Membership.objects.select_related("tenant").get(pk=membership.pk)


def _joined_before(token: str, user: User) -> Membership:
    if (joined := joined_by(token, user)) is None:
        raise NotFound("this invitation has ended: ask for another")
    return joined


def joined_by(token: str, user: User) -> Membership | None:
    """Return the membership of somebody who has come by this link before; None: they have not, or are out again."""
    with system_scope("who came by this invitation"):
        used = Invitation.objects.filter(
            token_sha256=_hash(token), accepted_at__isnull=False, email=user.email.lower()
        )
        rows = Membership.objects.select_related("tenant").filter(user=user, tenant__in=used.values("tenant"))
        return rows.first()


def confirm_address(user: User) -> None:
    """Take the address of a new account to be confirmed where an invitation mailed to it let them in."""
    with system_scope("by which invitation somebody came"):
        joined = Membership.objects.filter(user=user).values("tenant")
        if Invitation.objects.filter(email=user.email, accepted_at__isnull=False, tenant__in=joined).exists():
            EmailAddress.objects.filter(user=user, email__iexact=user.email).update(verified=True)
            EmailAddress.objects.fill_cache_for_user(user, list(EmailAddress.objects.filter(user=user)))


def take_back(*, tenant_id: uuid.UUID, invitation_id: uuid.UUID, actor: str) -> None:
    """End an open invitation."""
    with tenant_scope(tenant_id), transaction.atomic():
        row = Invitation.objects.select_for_update().filter(pk=invitation_id, accepted_at=None).first()
        if row is None:
            raise NotFound("there is no such open invitation")
        row.delete()
        audit.record(
            actor=actor,
            action="member.uninvite",
            target=f"invitation:{invitation_id}",
            tenant_id=tenant_id,
            detail={"email": row.email},
        )


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _line(text: str) -> str:
    """Return text that stays on one line of a mail's header."""
    return " ".join(text.split())
