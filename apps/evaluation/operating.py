"""What an operator does for a scripted user: keys, and whether a policy trains.

Each act leaves its audit row.
"""

import datetime as dt
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Tenant, User
from apps.adapters.models import Policy
from apps.engines.models import Engine, EngineState
from apps.keys.header import parse_authorization
from apps.keys.models import ApiKey, KeyScope
from apps.keys.services import create_key
from apps.learning.configuring import configure
from kernel import audit
from kernel.errors import Unavailable
from kernel.tenancy import system_scope, tenant_scope

ENGINE_WITHIN_S = 300.0


def await_engine(say: Callable[[str], None]) -> None:
    """Wait until any engine takes requests: a platform that is starting answers long before one is there."""
    until = time.monotonic() + ENGINE_WITHIN_S
    waits = False
    while not Engine.objects.filter(state=EngineState.READY).exists():
        if not waits:
            say("waiting for an engine")
        waits = True
        if time.monotonic() > until:
            raise Unavailable(f"no engine was ready within {ENGINE_WITHIN_S:.0f} s: see log/engine.log")
        time.sleep(1.0)


def owner_of(*, tenant_slug: str, api_key: str) -> tuple[Tenant, User]:
    """Return the tenant and the person that a key belongs to."""
    with system_scope("a measurement looks up whose key it was given"):
        tenant = Tenant.objects.get(slug=tenant_slug)
    with tenant_scope(tenant.pk):
        public_id = parse_authorization(f"Bearer {api_key}").public_id
        return tenant, ApiKey.objects.select_related("user").get(public_id=public_id).user


def give_key(
    *, tenant: Tenant, user: User, name: str, scopes: list[KeyScope], lives: dt.timedelta, actor: str
) -> tuple[ApiKey, str]:
    """Make a key that ends by itself; return it and its secret."""
    return create_key(
        tenant=tenant,
        user=user,
        name=name,
        scopes=scopes,
        expires_at=timezone.now() + lives,
        actor=actor,
    )


def set_training(policy: Policy, *, enabled: bool, actor: str) -> None:
    """Let a policy train or not, in its tenant's scope."""
    if policy.training_enabled == enabled:
        return
    with transaction.atomic():
        policy.training_enabled = enabled
        policy.save(update_fields=["training_enabled"])
        _note(policy, "policy.training", {"enabled": enabled}, actor)


def set_config(policy: Policy, config: Mapping[str, Any], *, actor: str) -> None:
    """Let a policy train in another way, in its tenant's scope;
    raises InvalidInput for what cannot be configured."""
    configure(policy_id=policy.pk, actor=actor, config=config, whole=True, operator=True)
    policy.refresh_from_db(fields=["config", "config_number"])


def _note(policy: Policy, action: str, detail: dict[str, Any], actor: str) -> None:
    audit.record(
        actor=actor, action=action, target=f"policy:{policy.pk}", tenant_id=policy.tenant_id, detail=detail
    )
