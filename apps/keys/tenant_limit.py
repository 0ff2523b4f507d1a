"""What all keys of a tenant together may ask:
what an operator lets the tenant, and the less that the tenant asks of itself.

They are two rows, of which the lesser number holds: whatever the tenant sets takes nothing of the operator's
away, and what it takes back gives it no more than that.
"""

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from apps.keys.limits import Allowance
from apps.keys.models import Limit
from kernel.audit import record
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope

NUMBERS = {"requests_per_minute": "requests", "tokens_per_minute": "tokens", "concurrent": "concurrent"}
"""Numbers of a limit, and what the settings and the gateway call each."""
LABELS = {
    "requests_per_minute": "Requests a minute",
    "tokens_per_minute": "Tokens a minute, read and written",
    "concurrent": "Requests at once",
}
"""What a person reads beside each."""


def own_limit(tenant_id: uuid.UUID) -> Limit | None:
    """Return what a tenant in scope asks of itself; None: nothing."""
    return Limit.objects.filter(tenant_id=tenant_id, key=None, by_tenant=True).first()


def granted(tenant_id: uuid.UUID) -> Allowance:
    """Return what a tenant in scope is let ask:
    the operator's numbers where there are, else the platform's defaults; 0 is no bound."""
    stored = Limit.objects.filter(tenant_id=tenant_id, key=None, by_tenant=False).first()
    return Allowance.of(_short(stored), settings.TENANT_LIMITS)


def holding(tenant_id: uuid.UUID) -> Allowance:
    """Return what holds for a tenant in scope: the lesser of what it is let and what it asks of itself."""
    return granted(tenant_id).lowered(_short(own_limit(tenant_id)))


class Sides(NamedTuple):
    """One number of a tenant's limit: who says what, and what holds. 0 is no bound."""

    name: str
    label: str
    default: int
    """The platform's."""
    operator: int | None
    """What an operator set in its place; None: nothing."""
    own: int | None
    """What the tenant asks of itself; None: nothing."""
    holds: int


def sides(tenant_id: uuid.UUID) -> list[Sides]:
    """Return the numbers of a tenant in scope, each with who says what."""
    operator = Limit.objects.filter(tenant_id=tenant_id, key=None, by_tenant=False).first()
    own = own_limit(tenant_id)
    now = holding(tenant_id)
    return [
        Sides(
            name=name,
            label=LABELS[name],
            default=settings.TENANT_LIMITS[short],
            operator=getattr(operator, name, None),
            own=getattr(own, name, None),
            holds=getattr(now, short),
        )
        for name, short in NUMBERS.items()
    ]


def in_words(allowance: Allowance) -> str:
    """Return what all keys together may ask."""
    units = {
        "requests a minute": allowance.requests,
        "tokens a minute": allowance.tokens,
        "requests at once": allowance.concurrent,
    }
    return ", ".join(
        f"{value:,} {unit}" if value else f"any number of {unit}" for unit, value in units.items()
    )


def set_own_limit(*, tenant_id: uuid.UUID, actor: str, numbers: Mapping[str, int | None]) -> Limit:
    """Set what a tenant's keys together may ask, as the tenant itself: less than it is let, never more.

    `numbers` by the names of `NUMBERS`; those that are not among them stay as they are, None is as much as it
    is let. Raises InvalidInput with the field and its bound; what is above it an operator sets.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        most = granted(tenant_id)
        for name, number in numbers.items():
            bound = getattr(most, NUMBERS[name])
            if number is not None and bound and not 1 <= number <= bound:
                raise InvalidInput(
                    f"At least 1, at most {bound:,}. Ask whoever runs the platform for more.", field=name
                )
        limit, _ = Limit.objects.update_or_create(
            tenant_id=tenant_id, key=None, by_tenant=True, defaults=dict(numbers)
        )
        record(actor=actor, action="limit.set", target="tenant", tenant_id=tenant_id, detail=dict(numbers))
    return limit


def _short(stored: Limit | None) -> dict[str, int | None]:
    return {short: getattr(stored, name, None) for name, short in NUMBERS.items()}
