"""Whom and what the names of the audit log stand for: an operator reads them all."""

import re
import uuid
from collections.abc import Iterable, Mapping

from apps.accounts.models import Tenant, User
from apps.adapters.models import Policy
from apps.keys.models import ApiKey
from kernel.ids import tail

_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def names_of(tokens: Iterable[str]) -> Mapping[str, str]:
    """Return words for `user:<id>`, `operator:<id>`, `key:<public id>`, `policy:<id>`, `tenant:<id>` and `system:<part>`.

    Of anything else the ids are shortened. Needs the system scope; four queries at most.
    """
    kinds: dict[str, set[str]] = {"user": set(), "key": set(), "policy": set(), "tenant": set()}
    wanted = {token for token in tokens if token}
    for token in wanted:
        kind, _, key = token.partition(":")
        kinds.setdefault({"operator": "user"}.get(kind, kind), set()).add(key)
    words = {f"system:{part}": f"the platform: {part}" for part in kinds.get("system", ()) if part}
    if people := _ids(kinds["user"]):
        for pk, email in User.objects.filter(pk__in=people).values_list("pk", "email"):
            words |= {f"user:{pk}": email, f"operator:{pk}": email}
    if kinds["key"]:
        keys = ApiKey.objects.filter(public_id__in=kinds["key"]).values_list(
            "public_id", "name", "user__email"
        )
        words |= {f"key:{public}": f"key {name or public} of {email}" for public, name, email in keys}
    if policies := _ids(kinds["policy"]):
        found = Policy.objects.filter(pk__in=policies).values_list("pk", "name", "tenant__slug")
        words |= {f"policy:{pk}": f"policy {name} of {slug}" for pk, name, slug in found}
    if tenants := _ids(kinds["tenant"]):
        slugs = Tenant.objects.filter(pk__in=tenants).values_list("pk", "slug")
        words |= {f"tenant:{pk}": f"tenant {slug}" for pk, slug in slugs}
    return {token: words.get(token) or shortened(token) for token in wanted}


def shortened(text: str) -> str:
    """Return a text in which each id is its last eight digits."""
    return _UUID.sub(lambda found: tail(found[0]), text)


def _ids(keys: Iterable[str]) -> set[uuid.UUID]:
    return {uuid.UUID(key) for key in keys if _UUID.fullmatch(key)}
