"""Which versions know something of what is gone, and the newest of each policy that does not."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.adapters.models import AdapterVersion, Policy, VersionState


@dataclass(frozen=True, slots=True)
class Known:
    """What the versions of one policy have to do with deleted samples. Nothing is undone by itself: they are kept."""

    policy: Policy
    learned: tuple[tuple[AdapterVersion, int], ...]
    """Versions whose own step had such samples, with how many, oldest first."""
    built_on: tuple[AdapterVersion, ...]
    """Versions that were trained from one of those, and so hold of it what it held."""
    clean: AdapterVersion | None
    """The newest version ready to answer that is neither; None is version 0, the bare base."""

    @property
    def live_knows(self) -> bool:
        """Whether the version that answers now is one of them."""
        knowing = {version.pk for version, _ in self.learned} | {version.pk for version in self.built_on}
        return self.policy.live_id in knowing


def known_of(samples: Mapping[uuid.UUID, int]) -> list[Known]:
    """Return, per policy, what became of samples that are gone (version -> how many), by the policy's name."""
    touched = AdapterVersion.objects.filter(pk__in=samples).values("policy_id")
    policies = Policy.objects.filter(pk__in=touched).select_related("live").order_by("name")
    return [_of_policy(policy, samples) for policy in policies]


def _of_policy(policy: Policy, samples: Mapping[uuid.UUID, int]) -> Known:
    versions = list(AdapterVersion.objects.filter(policy=policy).defer("metrics").order_by("number"))
    knowing = knowing_versions(((one.pk, one.parent_id) for one in versions), set(samples))
    clean = [one for one in versions if one.pk not in knowing and one.state == VersionState.READY]
    return Known(
        policy=policy,
        learned=tuple((one, samples[one.pk]) for one in versions if one.pk in samples),
        built_on=tuple(one for one in versions if one.pk in knowing and one.pk not in samples),
        clean=clean[-1] if clean else None,
    )


def knowing_versions(
    parents: Iterable[tuple[uuid.UUID, uuid.UUID | None]], learned: set[uuid.UUID]
) -> set[uuid.UUID]:
    """Return the versions that learned, and all that descend from them; `parents` in the order of their numbers."""
    knowing: set[uuid.UUID] = set()
    for version, parent in parents:
        if version in learned or parent in knowing:
            knowing.add(version)
    return knowing
