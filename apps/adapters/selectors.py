"""Which policy and version a name means."""

from dataclasses import dataclass

from apps.adapters.models import AdapterVersion, Policy, VersionState
from kernel.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Resolved:
    """A policy and the version asked of it; None is version 0, the bare base."""

    policy: Policy
    version: AdapterVersion | None
    pinned: bool
    """The name asked for this version and not for whatever is live."""


def resolve(name: str) -> Resolved:
    """Return what `default` (its live version) or `default@12` (that very version; 0 the base) means.

    Must run in a tenant's scope. Raises NotFound, or Conflict for a version that never passed its checks.
    """
    wanted, at, number = name.partition("@")
    policy = Policy.objects.select_related("live").filter(name=wanted).first()
    if policy is None or (at and not (number.isascii() and number.isdigit() and len(number) < 10)):
        raise NotFound(f"The model `{name}` does not exist.", field="model", code="model_not_found")
    if not at:
        return Resolved(policy, policy.live, pinned=False)
    return Resolved(policy, version_of(policy, int(number)), pinned=True)


def version_of(policy: Policy, number: int) -> AdapterVersion | None:
    """Return a policy's version that may be served; 0 is the bare base, None. Raises NotFound or Conflict."""
    if number == 0:
        return None
    version = AdapterVersion.objects.filter(policy=policy, number=number).first()
    if version is None:
        raise NotFound(f"{policy.name} has no version {number}", field="version", code="version_not_found")
    if version.state != VersionState.READY:
        raise Conflict(
            f"version {number} of {policy.name} is {version.state}, only ready ones can be served"
            + (f": {version.reason}" if version.reason else ""),
            field="version",
        )
    return version


def next_number(policy: Policy) -> int:
    """Return the number that the policy's next version gets."""
    newest = AdapterVersion.objects.filter(policy=policy).order_by("-number").first()
    return newest.number + 1 if newest else 1
