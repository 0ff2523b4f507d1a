"""What all keys of a tenant together may ask:
what the tenant sets for itself, and what only an operator does."""

import uuid
from collections.abc import Mapping

from django.conf import settings
from django.db import transaction

from apps.accounts.models import Tenant
from apps.keys import services
from apps.keys.models import Limit
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope

DEFAULTS = {"requests_per_minute": "requests", "tokens_per_minute": "tokens", "concurrent": "concurrent"}
"""Numbers of a limit, and what the platform's default of each is called in the settings."""


def tenant_limit() -> Limit | None:
    """Return what is set for the tenant of the scope; None: the platform's defaults hold."""
    return Limit.objects.filter(key=None).first()


def limit_of(tenant: Tenant) -> Limit | None:
    """Return the same of a tenant that is named, for whoever sees several."""
    return Limit.objects.filter(tenant=tenant, key=None).first()


def at_most(stored: Limit | None) -> Mapping[str, int]:
    """Return what the tenant may set itself, by number:
    the platform's default, or more where that is set; 0 is no bound."""
    found = {}
    for name, short in DEFAULTS.items():
        default, now = settings.TENANT_LIMITS[short], getattr(stored, name, None)
        found[name] = 0 if 0 in {default, now} else max(default, now or 0)
    return found


def in_words(stored: Limit | None) -> str:
    """Return what holds for the tenant, with the platform's defaults where nothing is set."""
    units = {
        "requests_per_minute": "requests a minute",
        "tokens_per_minute": "tokens a minute",
        "concurrent": "requests at once",
    }
    said = []
    for name, unit in units.items():
        value = getattr(stored, name, None)
        value = settings.TENANT_LIMITS[DEFAULTS[name]] if value is None else value
        said.append(f"{value:,} {unit}" if value else f"any number of {unit}")
    return ", ".join(said)


def set_own_limit(
    *,
    tenant_id: uuid.UUID,
    actor: str,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    concurrent: int | None = None,
) -> Limit:
    """Set what a tenant's keys together may ask, as the tenant itself:
    less than the platform lets it, never more.

    None is the platform's default. Raises InvalidInput with the field and its bound; what is above it an
    operator sets.
    """
    numbers = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "concurrent": concurrent,
    }
    with tenant_scope(tenant_id), transaction.atomic():
        Tenant.objects.select_for_update(no_key=True).get(
            pk=tenant_id
        )  # what was read still holds when it is set
        bounds = at_most(tenant_limit())
        for name, number in numbers.items():
            if number is not None and bounds[name] and not 1 <= number <= bounds[name]:
                raise InvalidInput(
                    f"At least 1, at most {bounds[name]:,}. Ask whoever runs the platform for more.",
                    field=name,
                )
        return services.set_limit(tenant_id=tenant_id, key_id=None, actor=actor, **numbers)
