"""What a key may name and ask. The callers hold the key's row locked, or have just made it."""

import uuid
from collections.abc import Sequence

from apps.adapters.models import Policy
from apps.keys.models import ApiKey, KeyPolicy, KeyScope, Limit
from kernel.errors import InvalidInput, NotFound

MOST_POLICIES = 100  # of one key


def limit_to(key: ApiKey, policies: Sequence[uuid.UUID] | None) -> list[str] | None:
    """Let a key name these policies of its tenant and no others (None: all); return their names.

    Raises InvalidInput or NotFound naming the field `policies`.
    """
    if policies is None:
        KeyPolicy.objects.filter(key=key).delete()
        _mark(key, some=False)
        return None
    wanted = set(policies)
    if not 1 <= len(wanted) <= MOST_POLICIES:
        raise InvalidInput(
            f"A key is limited to 1 to {MOST_POLICIES} policies, or to none at all.", field="policies"
        )
    if KeyScope.MANAGE in key.scopes:
        raise InvalidInput(
            f"A key with the scope `{KeyScope.MANAGE.value}` changes all of the tenant: it cannot be limited to policies.",
            field="policies",
        )
    # they are held until the rows that name them are committed
    rows = Policy.objects.select_for_update(of=("self",), no_key=True).filter(
        tenant_id=key.tenant_id, pk__in=wanted
    )
    found = {policy.pk: policy.name for policy in rows.order_by("pk")}
    if len(found) < len(wanted):
        raise NotFound("There is no such policy.", field="policies")
    KeyPolicy.objects.filter(key=key).exclude(policy_id__in=found).delete()
    KeyPolicy.objects.bulk_create(
        [KeyPolicy(tenant_id=key.tenant_id, key=key, policy_id=policy_id) for policy_id in found],
        ignore_conflicts=True,
    )
    _mark(key, some=True)
    return sorted(found.values())


def hand_over(old: ApiKey, new: ApiKey) -> None:
    """Let a key's successor name what the key may, and ask no more than it."""
    rows = KeyPolicy.objects.filter(key=old).values_list("policy_id", flat=True)
    KeyPolicy.objects.bulk_create(
        [KeyPolicy(tenant_id=new.tenant_id, key=new, policy_id=policy_id) for policy_id in rows]
    )
    _mark(new, some=old.some_policies)
    limit = Limit.objects.filter(key=old).first()
    if limit is not None:
        Limit.objects.create(
            tenant_id=new.tenant_id,
            key=new,
            requests_per_minute=limit.requests_per_minute,
            tokens_per_minute=limit.tokens_per_minute,
            concurrent=limit.concurrent,
        )


def _mark(key: ApiKey, *, some: bool) -> None:
    key.some_policies = some
    key.save(update_fields=["some_policies"])
