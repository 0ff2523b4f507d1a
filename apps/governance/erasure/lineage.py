"""Which versions know something of what is gone, and the newest of each policy that does not."""

import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db.models import F, Max, QuerySet

from apps.adapters.models import AdapterVersion, Policy, VersionState

NAMED = 50
"""Versions of a kind that a page names, the oldest of them; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the versions of one policy have to do with deleted samples.

    Nothing is undone by itself: they are kept.
    """

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


@dataclass(frozen=True, slots=True)
class Branch:
    """Versions that were each trained from the one numbered before it, but for the first of them."""

    clean: range
    """Numbers of those that know nothing: they come first."""
    knowing: range
    """Numbers of those that learned, and of all after them."""


def known_of(samples: Mapping[uuid.UUID, int]) -> list[Known]:
    """Return, per policy, what became of samples that are gone (version -> how
    many), by the policy's name."""
    touched = AdapterVersion.objects.filter(pk__in=samples).values("policy_id")
    policies = Policy.objects.filter(pk__in=touched).order_by("name").select_related("live")
    return [_of_policy(policy, samples) for policy in policies]


def _of_policy(policy: Policy, samples: Mapping[uuid.UUID, int]) -> Known:
    rows = AdapterVersion.objects.filter(policy=policy).defer("metrics")
    numbers = dict(rows.filter(pk__in=samples).order_by("number").values_list("number", "pk"))
    learned = list(numbers)
    # what is older than all that learned has no part in it;
    # of the rest, only those not trained from the one before
    turnings = rows.filter(number__gt=learned[0]).exclude(parent__number=F("number") - 1).order_by("number")
    newest = rows.aggregate(number=Max("number"))["number"]
    branches = branches_of(learned, list(turnings.values_list("number", "parent__number")), newest)
    built_on = list(islice(_built_on(branches, numbers), NAMED))
    named = {row.number: row for row in rows.filter(number__in=[*learned[:NAMED], *built_on])}
    return Known(
        policy=policy,
        learned=tuple((named[number], samples[numbers[number]]) for number in learned[:NAMED]),
        more_learned=len(learned[NAMED:]),
        built_on=tuple(named[number] for number in built_on),
        more_built_on=sum(len(one.knowing) for one in branches) - len(learned) - len(built_on),
        clean=_newest_clean(rows.filter(state=VersionState.READY), branches),
        live_knows=policy.live is not None and _knows(branches, policy.live.number),
    )


def _built_on(branches: Iterable[Branch], learned: Container[int]) -> Iterator[int]:
    return (number for one in branches for number in one.knowing if number not in learned)


def _newest_clean(ready: QuerySet[AdapterVersion], branches: Sequence[Branch]) -> AdapterVersion | None:
    newest_first = ready.order_by("-number")
    for one in reversed(branches):
        within = newest_first.filter(number__gte=one.clean.start, number__lt=one.clean.stop)
        if one.clean and (found := within.first()):
            return found
    return newest_first.filter(number__lt=branches[0].clean.start).first()


def branches_of(
    learned: Sequence[int], turnings: Iterable[tuple[int, int | None]], newest: int
) -> list[Branch]:
    """Return the branches of a policy's versions from the first that learned on,
    by their numbers, which leave none out.

    `learned` are the numbers that learned, rising; `turnings` the versions after the first of these that were
    not trained from the one before, rising, each with its parent's number (None: the bare base); `newest` is
    the last number of all.
    """
    turned = [(learned[0], None), *turnings]
    ends = [*(number for number, _ in turned[1:]), newest + 1]
    branches: list[Branch] = []
    for (first, parent), end in zip(turned, ends, strict=True):
        knows = parent is not None and _knows(branches, parent)
        place = bisect_left(learned, first)
        since = first if knows else min(learned[place], end) if place < len(learned) else end
        branches.append(Branch(range(first, since), range(since, end)))
    return branches


def _knows(branches: Sequence[Branch], number: int) -> bool:
    place = bisect_right(branches, number, key=lambda one: one.clean.start)
    return place > 0 and number in branches[place - 1].knowing
