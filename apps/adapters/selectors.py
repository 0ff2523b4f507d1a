"""Which version a number means, and which ones a version came from."""

import uuid

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.adapters.models import AdapterVersion, Policy, VersionState
from kernel.errors import Conflict, NotFound

_NAMED = 5
"""Versions that are named to who asks for one that is not there, the newest first."""


def policy_of(policy_id: uuid.UUID, *, field: str | None = None) -> Policy:
    """Return a policy of the tenant in scope. Raises NotFound, which names `field`."""
    policy = Policy.objects.filter(pk=policy_id).first()
    if policy is None:
        raise NotFound("There is no such policy. `GET /api/policies` lists them.", field=field)
    return policy


def version_of(policy: Policy, number: int) -> AdapterVersion | None:
    """Return a policy's version that may be served; 0 is the bare base, None. Raises NotFound or Conflict."""
    if number == 0:
        return None
    version = AdapterVersion.objects.filter(policy=policy, number=number).first()
    if version is None:
        raise NotFound(
            f"{policy.name} has no version {number}; {_which_ones(policy)}",
            field="version",
            code="version_not_found",
        )
    if version.state != VersionState.READY:
        raise Conflict(
            f"version {number} of {policy.name} is {version.state}, only ready ones can be served"
            + (f": {version.reason}" if version.reason else ""),
            field="version",
        )
    return version


def _which_ones(policy: Policy) -> str:
    ready = AdapterVersion.objects.filter(policy=policy, state=VersionState.READY)
    numbers = ready.order_by("-number").values_list("number", flat=True)
    newest = [str(number) for number in numbers[: _NAMED + 1]]
    if not newest:
        return "only the bare base, 0, is ready"
    more = " …" if len(newest) > _NAMED else ""
    return f"ready are {', '.join(newest[:_NAMED])}{more} and the bare base, 0"


def lineage_of(policy: Policy, head: uuid.UUID | None) -> dict[uuid.UUID, int]:
    """Return a version of a policy and all that it was trained from, each with its number;
    of the bare base (None) none."""
    rows = AdapterVersion.objects.filter(policy=policy).values_list("pk", "parent_id", "number")
    of = {pk: (parent, number) for pk, parent, number in rows}
    found: dict[uuid.UUID, int] = {}
    while head is not None:
        parent, found[head] = of[head]
        head = parent
    return found


def next_number(policy: Policy) -> int:
    """Return the number that the policy's next version gets."""
    newest = AdapterVersion.objects.filter(policy=policy).order_by("-number").first()
    return newest.number + 1 if newest else 1


def with_version_counts(policies: QuerySet[Policy]) -> QuerySet[Policy]:
    """Add `n_versions`: the newest one's number,
    as numbers begin at 1 and none is ever left out or deleted."""
    newest = AdapterVersion.objects.filter(policy=OuterRef("pk")).order_by("-number").values("number")[:1]
    return policies.annotate(
        n_versions=Coalesce(Subquery(newest, output_field=IntegerField()), Value(0)),
    )
