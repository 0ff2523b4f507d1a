"""Which versions know something of what is gone, and the newest of each policy that does not."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Min

from apps.adapters.models import AdapterVersion, Policy, VersionState

NAMED = 50
"""Versions of a kind that a page names, the oldest of them; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the versions of one policy have to do with deleted samples. Nothing is undone by itself: they are kept."""

    policy: Policy
    learned: tuple[tuple[AdapterVersion, int], ...]
    """Versions whose own step had such samples, with how many, oldest first: at most `NAMED`."""
    more_learned: int
    """Count of such versions that are not named."""
    built_on: tuple[AdapterVersion, ...]
    """Versions that were trained from one of those, and so hold of it what it held: at most `NAMED`."""
    more_built_on: int
    """Count of such versions that are not named."""
    clean: AdapterVersion | None
    """The newest version ready to answer that is neither; None is version 0, the bare base."""
    live_knows: bool
    """Whether the version that answers now is one of them."""


def known_of(samples: Mapping[uuid.UUID, int]) -> list[Known]:
    """Return, per policy, what became of samples that are gone (version -> how many), by the policy's name."""
    touched = AdapterVersion.objects.filter(pk__in=samples).values("policy_id")
    policies = Policy.objects.filter(pk__in=touched).order_by("name").select_related("live")
    return [_of_policy(policy, samples) for policy in policies]


def _of_policy(policy: Policy, samples: Mapping[uuid.UUID, int]) -> Known:
    rows = AdapterVersion.objects.filter(policy=policy).defer("metrics")
    first = rows.filter(pk__in=samples).aggregate(number=Min("number"))["number"]
    # what is older than all that learned has no part in it
    lineage = list(rows.filter(number__gte=first).order_by("number").values_list("pk", "parent_id", "state"))
    knowing = knowing_versions(((pk, parent) for pk, parent, _ in lineage), set(samples))
    learned = [pk for pk, _, _ in lineage if pk in samples]
    built_on = [pk for pk, _, _ in lineage if pk in knowing and pk not in samples]
    clean = [pk for pk, _, state in lineage if pk not in knowing and state == VersionState.READY][-1:]
    named = rows.in_bulk([*learned[:NAMED], *built_on[:NAMED], *clean])
    before = rows.filter(number__lt=first, state=VersionState.READY).order_by("-number")
    return Known(
        policy=policy,
        learned=tuple((named[pk], samples[pk]) for pk in learned[:NAMED]),
        more_learned=len(learned[NAMED:]),
        built_on=tuple(named[pk] for pk in built_on[:NAMED]),
        more_built_on=len(built_on[NAMED:]),
        clean=named[clean[0]] if clean else before.first(),
        live_knows=policy.live_id in knowing,
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
