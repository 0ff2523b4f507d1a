"""Read keys, and which of their scopes count."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db.models import CharField, Func, OuterRef, QuerySet, Subquery
from django.utils import timezone

from apps.accounts.models import Membership
from apps.keys.models import ApiKey


class ScopesOf(Func):
    """The scopes that a role gives: Postgres says it, to this and to every look-up of a key."""

    function = "attune_scopes_of"
    output_field = ArrayField(CharField())


def working_keys(user_id: uuid.UUID) -> QuerySet[ApiKey]:
    """Return a person's keys in scope that are taken now: neither revoked nor at their end."""
    keys = ApiKey.objects.filter(user_id=user_id, revoked_at=None)
    return keys.exclude(expires_at__lte=timezone.now())


def with_roles(keys: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    """Return the keys with the `role` of each one's person, None where they are no member any more,
    and what it gives, for `effective` and `idle`."""
    role = Membership.objects.filter(user_id=OuterRef("user_id"), tenant_id=OuterRef("tenant_id"))
    return keys.annotate(
        role=Subquery(role.values("role")), role_scopes=ScopesOf(Subquery(role.values("role")))
    )


def effective(key: ApiKey) -> list[str]:
    """Return the scopes of a key `with_roles` that count with its next request."""
    given: list[str] = key.role_scopes  # type: ignore[attr-defined]
    return [scope for scope in key.scopes if scope in given]


def idle(key: ApiKey) -> list[str]:
    """Return the scopes of a key `with_roles` that its person's role does not give now."""
    counting = effective(key)
    return [scope for scope in key.scopes if scope not in counting]


def n_held_back(user_id: uuid.UUID) -> int:
    """Return how many working keys of a person in scope have scopes that do not count."""
    return sum(bool(idle(key)) for key in with_roles(working_keys(user_id)))
