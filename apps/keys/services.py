"""Make, check, rotate and revoke keys."""

import datetime as dt
import hashlib
import hmac
import secrets
import string
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Membership, Tenant, User
from apps.keys import limiting
from apps.keys.header import NOT_VALID, Credential, parse_authorization
from apps.keys.models import LONGEST_NAME, ApiKey, KeyScope, Limit
from apps.keys.selectors import ScopesOf
from kernel.audit import record
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from kernel.tenancy import tenant_scope

_ALPHABET = string.ascii_letters + string.digits
_PUBLIC_LENGTH = 16
LARGEST_LIMIT = 2_000_000_000
_LAST_USED_EVERY = dt.timedelta(minutes=1)
# compared against when there is no such key, so that both refusals take the same steps
_NO_KEY = hashlib.sha256(b"no key").digest()

_FIND = (
    "SELECT id, tenant_id, user_id, secret_sha256, scopes, expires_at, revoked_at, last_used_at, may_act, policies"
    " FROM attune_find_key(%s)"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request acts for: what a valid key says."""

    tenant_id: uuid.UUID
    user_id: uuid.UUID
    key_id: uuid.UUID
    public_id: str
    scopes: frozenset[str]
    """Those that its person's role gives."""
    policies: frozenset[uuid.UUID] | None = None
    """The only ones that it may name; None: every policy of the tenant."""

    @property
    def actor(self) -> str:
        """How audit rows name this caller."""
        return f"key:{self.public_id}"

    def require(self, scope: KeyScope) -> None:
        """Raise Forbidden unless the key has this scope."""
        if scope.value not in self.scopes:
            raise Forbidden(
                f"This key lacks the scope `{scope.value}`, or its person's role does not give it. "
                "Make a key that has it under Keys, or ask an owner for another role.",
                code="insufficient_scope",
            )

    def may_name(self, policy_id: uuid.UUID) -> bool:
        """Whether a policy of the tenant exists for this key."""
        return self.policies is None or policy_id in self.policies


@dataclass(frozen=True, slots=True)
class FoundKey:
    """What the database has under a public id. Nothing of it may be used before `recognise` agreed."""

    id: uuid.UUID
    tenant_id: uuid.UUID
    user_id: uuid.UUID
    secret_sha256: bytes = field(repr=False)
    scopes: frozenset[str]
    may_act: bool
    ended: bool
    """Revoked or expired."""
    unseen: bool
    """Whether `note_use` is due."""
    policies: frozenset[uuid.UUID] | None = None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return what `attune_look_up` says of a key."""
        unseen_s = found["unseen_s"]
        return cls(
            id=uuid.UUID(found["id"]),
            tenant_id=uuid.UUID(found["tenant_id"]),
            user_id=uuid.UUID(found["user_id"]),
            secret_sha256=bytes.fromhex(found["secret_sha256"]),
            scopes=frozenset(found["scopes"]),
            may_act=found["may_act"],
            ended=found["ended"],
            unseen=unseen_s is None or unseen_s > _LAST_USED_EVERY.total_seconds(),
            policies=None if found["policies"] is None else frozenset(map(uuid.UUID, found["policies"])),
        )


def authenticate(header: str | None) -> Caller:
    """Return who the `Authorization` header speaks for.

    Reads the key's row every time: no cache can revive a revoked key. Raises Unauthenticated for
    anything but a key that is known, not revoked and not expired, whose user is active and still a
    member of the tenant. The message never repeats what was sent.
    """
    credential = parse_authorization(header)
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [credential.public_id])
        row = cursor.fetchone()
    found = None
    if row is not None:
        (
            key_id,
            tenant_id,
            user_id,
            secret,
            scopes,
            expires_at,
            revoked_at,
            last_used_at,
            may_act,
            policies,
        ) = row
        now = timezone.now()
        found = FoundKey(
            id=key_id,
            tenant_id=tenant_id,
            user_id=user_id,
            secret_sha256=bytes(secret),
            scopes=frozenset(scopes),
            may_act=may_act,
            ended=revoked_at is not None or (expires_at is not None and expires_at <= now),
            unseen=last_used_at is None or now - last_used_at > _LAST_USED_EVERY,
            policies=None if policies is None else frozenset(policies),
        )
    caller = recognise(credential, found)
    if found is not None and found.unseen:
        note_use(tenant_id=caller.tenant_id, key_id=caller.key_id)
    return caller


def recognise(credential: Credential, found: FoundKey | None) -> Caller:
    """Return who a credential speaks for, given what the database has under its
    public id; as `authenticate`."""
    stored = found.secret_sha256 if found is not None else _NO_KEY
    matches = hmac.compare_digest(stored, _hash(credential.secret))
    if found is None or not matches:
        raise Unauthenticated(NOT_VALID, code="invalid_api_key")
    if found.ended or not found.may_act:
        raise Unauthenticated("The API key is revoked or expired.", code="invalid_api_key")
    return Caller(
        found.tenant_id, found.user_id, found.id, credential.public_id, found.scopes, found.policies
    )


def note_use(*, tenant_id: uuid.UUID, key_id: uuid.UUID) -> None:
    """Write when a key was last used; what happened less than a minute ago is left as it is."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_EVERY)
    with tenant_scope(tenant_id):
        ApiKey.objects.filter(stale, id=key_id).update(last_used_at=now)


def create_key(
    *,
    tenant: Tenant,
    user: User,
    name: str,
    scopes: Sequence[KeyScope | str],
    expires_at: dt.datetime | None = None,
    policies: Sequence[uuid.UUID] | None = None,
    actor: str | None = None,
) -> tuple[ApiKey, str]:
    """Create a key of a member of the tenant; returns it with its text, which is never seen again.

    `policies` are the only ones that it may name; None: all, those to come too. Raises InvalidInput naming the
    field, `scopes` where the member's role does not give one of them.
    """
    wanted = sorted({KeyScope(scope).value for scope in scopes})
    if not wanted:
        raise InvalidInput("A key needs at least one scope.", field="scopes")
    if not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidInput(f"A key's name has 1 to {LONGEST_NAME} characters.", field="name")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput("The expiry lies in the past.", field="expires_at")
    with tenant_scope(tenant.id), transaction.atomic():
        _check_role_gives(user, wanted)
        key, text = _issue(
            tenant_id=tenant.id, user_id=user.id, name=name, scopes=wanted, expires_at=expires_at
        )
        names = limiting.limit_to(key, policies) if policies is not None else None
        record(
            actor=actor or f"user:{user.id}",
            action="key.create",
            target=f"key:{key.public_id}",
            tenant_id=tenant.id,
            detail={"name": name, "scopes": wanted} | ({"policies": names} if names is not None else {}),
        )
    return key, text


def rotate_key(
    *, tenant_id: uuid.UUID, key_id: uuid.UUID, user_id: uuid.UUID, actor: str, overlap_s: float
) -> tuple[ApiKey, str]:
    """Issue a key with the same name, scopes, policies, limits and expiry;
    the old one ends after `overlap_s` seconds.

    `user_id` is who asks and is given the new secret. Raises Forbidden unless the key is theirs: whoever else
    held it would act as its person, with a role that is not their own. Raises Conflict for a key that was rotated
    before (a second successor would end with the first one's overlap), is revoked or expired.
    """
    if overlap_s < 0:
        raise InvalidInput("The overlap cannot be negative.", field="overlap_s")
    with tenant_scope(tenant_id), transaction.atomic():
        _hold_membership(user_id)
        old = _locked(key_id)
        if old.user_id != user_id:
            raise Forbidden(
                "A key is rotated by its own person alone, who is shown the new secret. Revoke it instead."
            )
        if old.successor is not None:
            raise Conflict(
                f"The key was rotated already, into {old.successor}. Rotate that one, or make another key.",
                code="rotated_already",
            )
        now = timezone.now()
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise Conflict("A revoked or expired key cannot be rotated.")
        key, text = _issue(
            tenant_id=tenant_id,
            user_id=old.user_id,
            name=old.name,
            scopes=old.scopes,
            expires_at=old.expires_at,
        )
        limiting.hand_over(old, key)
        ends = now + dt.timedelta(seconds=overlap_s)
        old.expires_at = ends if old.expires_at is None else min(ends, old.expires_at)
        old.successor = key
        old.save(update_fields=["expires_at", "successor"])
        record(
            actor=actor,
            action="key.rotate",
            target=f"key:{old.public_id}",
            tenant_id=tenant_id,
            detail={"successor": key.public_id, "overlap_s": overlap_s},
        )
    return key, text


def revoke_key(*, tenant_id: uuid.UUID, key_id: uuid.UUID, actor: str) -> ApiKey:
    """Revoke a key: the next request with it is refused on every process. Again changes nothing."""
    with tenant_scope(tenant_id), transaction.atomic():
        key = _locked(key_id)
        if key.revoked_at is None:
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            record(actor=actor, action="key.revoke", target=f"key:{key.public_id}", tenant_id=tenant_id)
    return key


def set_policies(
    *, tenant_id: uuid.UUID, key_id: uuid.UUID, policies: Sequence[uuid.UUID] | None, actor: str
) -> ApiKey:
    """Let a key name only these policies (None: all), from its next request on every process. Audited.

    Raises Conflict for a revoked key.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        key = _changeable(key_id)
        names = limiting.limit_to(key, policies)
        record(
            actor=actor,
            action="key.policies",
            target=f"key:{key.public_id}",
            tenant_id=tenant_id,
            detail={"policies": names},
        )
    return key


def set_limit(
    *,
    tenant_id: uuid.UUID,
    key_id: uuid.UUID | None,
    actor: str,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    concurrent: int | None = None,
) -> Limit:
    """Set what a key may ask, or, without one, what an operator lets the tenant;
    from the next request on every process.

    None is the platform's default, 0 no limit. What the tenant asks of itself stays as it is. Raises Conflict
    for a revoked key.
    """
    numbers = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "concurrent": concurrent,
    }
    for name, number in numbers.items():
        if number is not None and not 0 <= number <= LARGEST_LIMIT:
            raise InvalidInput(f"A limit lies between 0 and {LARGEST_LIMIT}.", field=name)
    with tenant_scope(tenant_id), transaction.atomic():
        key = _changeable(key_id) if key_id is not None else None
        limit, _ = Limit.objects.update_or_create(
            tenant_id=tenant_id, key=key, by_tenant=False, defaults=numbers
        )
        record(
            actor=actor,
            action="limit.set",
            target=f"key:{key.public_id}" if key is not None else "tenant",
            tenant_id=tenant_id,
            detail=numbers,
        )
    return limit


def _issue(
    *,
    tenant_id: uuid.UUID,
    user_id: uuid.UUID,
    name: str,
    scopes: Sequence[str],
    expires_at: dt.datetime | None,
) -> tuple[ApiKey, str]:
    public_id = "".join(secrets.choice(_ALPHABET) for _ in range(_PUBLIC_LENGTH))
    credential = Credential(public_id, secrets.token_urlsafe(32))
    key = ApiKey.objects.create(
        tenant_id=tenant_id,
        user_id=user_id,
        name=name,
        public_id=public_id,
        secret_sha256=_hash(credential.secret),
        scopes=list(scopes),
        expires_at=expires_at,
    )
    return key, credential.text


def _hold_membership(user_id: uuid.UUID) -> tuple[str, list[str]] | None:
    """Hold a person's membership until their new key is there, so that who deletes it ends that key too.

    Returns their role and the scopes that it gives, None for no member. It is taken before any key.
    """
    held = Membership.objects.select_for_update(no_key=True).filter(user_id=user_id)
    return held.values_list("role", ScopesOf("role")).first()


def _check_role_gives(user: User, scopes: Sequence[str]) -> None:
    found = _hold_membership(user.id)
    if found is None:
        raise InvalidInput("The user is not a member of this tenant.", field="user")
    role, given = found
    over = [scope for scope in scopes if scope not in given]
    if over:
        raise InvalidInput(
            f"The role `{role}` does not give the scope `{over[0]}`: its keys may have {_listed(given)}.",
            field="scopes",
        )


def _listed(scopes: Sequence[str]) -> str:
    return ", ".join(f"`{scope}`" for scope in scopes)


def _locked(key_id: uuid.UUID) -> ApiKey:
    key = ApiKey.objects.select_for_update(no_key=True).filter(id=key_id).first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


def _changeable(key_id: uuid.UUID) -> ApiKey:
    key = _locked(key_id)
    if key.revoked_at is not None:
        raise Conflict("The key is revoked for good. Make another under Keys.", code="key_revoked")
    return key


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
