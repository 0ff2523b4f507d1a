"""Who gets a slot next: the one rule, used for one process alone and for several that share an engine.

An engine batches at most so many distinct adapters. Left to itself it lets requests of adapters in the batch
overtake all others, for as long as they keep coming. Here requests are served in the order in which they came,
with two exceptions. A tenant's policies count as having come later, the more slots that tenant has. And while an
adapter's turn is young, more requests of it may join and overtake: they cost no slot, and a batch of few adapters
is a fast one.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Claim:
    """One process's interest in one adapter. Times: seconds since 1970, the clock that all processes share."""

    tenant: str
    at: float
    """Of a held slot: since when its turn runs. Of a waiting adapter: since when its first request waits."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one process holds of an engine, and what it waits for, by served name."""

    held: Mapping[str, Claim] = field(default_factory=dict)
    waiting: Mapping[str, Claim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rules:
    """How slots are given out."""

    turn_s: float = 1.0
    """While its turn is younger than this, an adapter's new requests may overtake those of others."""
    tenant_handicap_s: float = 1.0
    """For each slot that a tenant has, its next policy counts as having come so much later."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rule says to one process."""

    granted: frozenset[str]
    """Those of its waiting adapters whose requests may go now."""
    contended: bool
    """Somebody waits who gets nothing now: turns that have lasted take no more requests, idle slots are given up."""


def decide(*, slots: int, now: float, mine: Standing, others: Sequence[Standing], rules: Rules) -> Decision:
    """Give the free ones of `slots` to those who wait, the longest waiting first, and say what is mine."""
    everybody = [mine, *others]
    held = _earliest(standing.held for standing in everybody)
    waiting = _earliest(standing.waiting for standing in everybody)
    tenants = _slots_of_tenants(held)
    running, blocked = set(held), False
    granted: set[str] = set()
    remaining = dict(waiting)
    while remaining:
        name = min(remaining, key=lambda one: (_came_at(remaining[one], tenants, rules), one))
        claim = remaining.pop(name)
        if name in running:
            young = name not in held or now - held[name].at < rules.turn_s
            if blocked and not young:
                continue
        elif len(running) < slots:
            running.add(name)
            tenants[claim.tenant] = tenants.get(claim.tenant, 0) + 1
        else:
            blocked = True
            continue
        granted.add(name)
    return Decision(frozenset(granted & mine.waiting.keys()), contended=blocked)


def _earliest(claims: Iterable[Mapping[str, Claim]]) -> dict[str, Claim]:
    merged: dict[str, Claim] = {}
    for of_process in claims:
        for name, claim in of_process.items():
            if name not in merged or claim.at < merged[name].at:
                merged[name] = claim
    return merged


def _slots_of_tenants(held: Mapping[str, Claim]) -> dict[str, int]:
    count: dict[str, int] = {}
    for claim in held.values():
        count[claim.tenant] = count.get(claim.tenant, 0) + 1
    return count


def _came_at(claim: Claim, tenants: Mapping[str, int], rules: Rules) -> float:
    return claim.at + rules.tenant_handicap_s * tenants.get(claim.tenant, 0)


def without(standing: Standing, names: AbstractSet[str]) -> Standing:
    """Return a standing that has let go of some slots."""
    return Standing(
        {name: claim for name, claim in standing.held.items() if name not in names}, standing.waiting
    )
