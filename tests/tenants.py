"""Tenants with a person, a policy and a key, as tests of rooms that stand on those need them."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.models import Membership, Role, Tenant, User
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.conversations.models import Turn
from apps.keys.models import ApiKey, KeyScope
from apps.keys.services import Caller, create_key, rotate_key
from kernel.tenancy import system_scope, tenant_scope

BASE_MODEL = "smollm2-135m-instruct"


@dataclass(slots=True)
class Somebody:
    """A member of a tenant with a key. `secret` is the key's text."""

    tenant: Tenant
    user: User
    policy: Policy
    key: ApiKey
    secret: str = field(repr=False)

    @property
    def caller(self) -> Caller:
        """Who a request with the key acts for."""
        return Caller(
            self.tenant.id, self.user.id, self.key.id, self.key.public_id, frozenset(self.key.scopes)
        )

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries the key."""
        return {"Authorization": f"Bearer {self.secret}"}

    def turns(self) -> list[Turn]:
        """Return the tenant's turns, oldest first."""
        with tenant_scope(self.tenant.id):
            return list(Turn.objects.order_by("created_at", "id"))


def add_somebody(
    slug: str = "acme",
    *,
    tenant: Tenant | None = None,
    scopes: tuple[str, ...] = (KeyScope.CHAT,),
    email: str | None = None,
) -> Somebody:
    """Make a tenant (or join one) with a member, the policy `default` (temperature 0.7) and a key."""
    with system_scope("tests"):
        tenant = tenant or Tenant.objects.create(slug=slug, name=slug.title())
        user = User.objects.create_user(email or f"{uuid.uuid4().hex[:8]}@{slug}.example")
    with tenant_scope(tenant.id):
        Membership.objects.create(user=user, role=Role.MEMBER)
        policy, _ = Policy.objects.get_or_create(name="default", defaults={"base_model": BASE_MODEL})
    key, secret = create_key(tenant=tenant, user=user, name="tests", scopes=scopes)
    return Somebody(tenant, user, policy, key, secret)


def rotated(somebody: Somebody, *, overlap_s: float) -> tuple[ApiKey, str]:
    """Rotate somebody's key as themselves; return its successor, and that one's text."""
    return rotate_key(
        tenant_id=somebody.tenant.id,
        key_id=somebody.key.id,
        user_id=somebody.user.id,
        actor=f"user:{somebody.user.id}",
        overlap_s=overlap_s,
    )


def add_version(policy: Policy, number: int = 1, *, live: bool = True, **fields: Any) -> AdapterVersion:
    """Make a ready version of a policy, and the live one unless told not to."""
    with tenant_scope(policy.tenant_id):
        sha256 = f"{number:02x}" * 32
        version = AdapterVersion.objects.create(
            policy=policy,
            number=number,
            depth=number,
            served_name=f"p{policy.id.hex[-8:]}-v{number}-{sha256[:8]}",
            sha256=sha256,
            path=f"somewhere/{number}",
            rank=16,
            alpha=32,
            state=VersionState.READY,
            run_id=uuid.uuid4(),
            **fields,
        )
        if live:
            policy.live = version
            policy.save(update_fields=["live"])
    return version
