"""Who stands behind the names of the audit log, as far as the person who looks may see it."""

import uuid
from collections.abc import Iterable, Mapping

from django.db.models import Q

from apps.accounts.models import Membership, User
from apps.adapters.models import Policy
from apps.dashboard.places import Place
from apps.keys.models import ApiKey
from kernel.ids import tail
from kernel.tenancy import system_scope

_FOUND = 50
"""People, keys or policies that one filter means, at most: what it costs is bounded."""


def named(place: Place, tokens: Iterable[str]) -> Mapping[str, str]:
    """Return words for `user:<id>`, `key:<public id>`, `policy:<id>` and `system:<part>`; what is none of these is left out.

    Four queries at most. Members and keys are named to who sees them; who belongs to the tenant no more is not, nor is an
    operator: only that it was one.
    """
    kinds: dict[str, set[str]] = {"user": set(), "key": set(), "policy": set()}
    words: dict[str, str] = {}
    for token in {*tokens}:
        kind, _, key = token.partition(":")
        if kind == "system" and key:
            words[token] = f"the platform: {key}"
        elif kind in kinds and key:
            kinds[kind].add(key)
    words |= _people(place, _ids(kinds["user"]))
    if kinds["key"]:
        keys = ApiKey.objects.filter(public_id__in=kinds["key"]).values_list("public_id", "name", "user_id")
        for public_id, name, owner in keys:
            seen = place.manages or owner == place.user.pk
            words[f"key:{public_id}"] = f"key {name or public_id}" if seen else "a key"
    policies = _ids(kinds["policy"])
    if policies:
        for policy_id, name in Policy.objects.filter(pk__in=policies).values_list("pk", "name"):
            words[f"policy:{policy_id}"] = f"policy {name}"
    return words


def _people(place: Place, ids: set[uuid.UUID]) -> dict[str, str]:
    if not ids:
        return {}
    members = dict(Membership.objects.filter(user_id__in=ids).values_list("user_id", "user__email"))
    others = ids - members.keys()
    operators: set[uuid.UUID] = set()
    if others:
        with system_scope("who of these operates the platform"):
            operators = set(User.objects.filter(pk__in=others, is_staff=True).values_list("pk", flat=True))
    words = {}
    for one in ids:
        if one in members:
            said = members[one] if place.talks or one == place.user.pk else "a member"
        elif one in operators:
            said = "an operator of the platform"
        else:
            said = f"somebody who is no member ({tail(one)})"
        words[f"user:{one}"] = said
    return words


def meant(text: str) -> set[str]:
    """Return the names in the audit log of members, keys and policies that are called so, or begin so. Three queries."""
    if not text:
        return set()
    people = Membership.objects.filter(user__email__istartswith=text).values_list("user_id", flat=True)
    called = Q(name__istartswith=text.removeprefix("key "))
    keys = ApiKey.objects.filter(called).values_list("public_id", flat=True)
    policies = Policy.objects.filter(name__istartswith=text.removeprefix("policy ")).values_list(
        "pk", flat=True
    )
    return {
        *(f"user:{one}" for one in people[:_FOUND]),
        *(f"key:{one}" for one in keys[:_FOUND]),
        *(f"policy:{one}" for one in policies[:_FOUND]),
    }


def _ids(keys: Iterable[str]) -> set[uuid.UUID]:
    found = set()
    for key in keys:
        try:
            found.add(uuid.UUID(key))
        except ValueError:
            continue
    return found
