"""Who gets a slot next: the one rule, used for one process alone and for several that share an engine.

An engine batches at most so many distinct adapters. Left to itself it lets requests of adapters in the batch
overtake all others, for as long as they keep coming. Here requests are served in the order in which they
came, with two exceptions. A tenant's policies count as having come later, the more slots that tenant has. And
while an adapter's turn is young, more requests of it may join and overtake: they cost no slot, and a batch of
few adapters is a fast one. Where somebody waits for whom there is no slot, the oldest turns are asked back:
their requests pause after some tokens and wait like everybody else, so that a wait is some turns long and not
the rest of somebody's reply.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

BASE = ""
"""What the bare base is called here: it takes a slot as an adapter does, and belongs to no tenant."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One process's interest in one adapter.

    Times: seconds since 1970, the clock that all processes share.
    """

    tenant: str
    at: float
    """Of a held slot: since when its turn runs. Of a waiting adapter: since when its first request waits."""
    pausable: bool = True
    """Of a held slot: whether all its requests can be paused."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one process holds of an engine, and what it waits for, by served name."""

    held: Mapping[str, Claim] = field(default_factory=dict)
    waiting: Mapping[str, Claim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rules:
    """How slots are given out."""

    turn_s: float = 0.25
    """While its turn is younger than this, an adapter's new requests may overtake those of others."""
    slice_tokens: int = 4
    """A request that is to pause first gets so many more tokens since it was last let in."""
    tenant_handicap_s: float = 1.0
    """For each other slot that a tenant has, a policy of it counts as having come so much later."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rule says to one process."""

    granted: frozenset[str]
    """Those of its waiting adapters whose requests may go now."""
    contended: bool
    """Somebody waits who gets nothing now: turns that have lasted take no more requests,
    idle slots are given up."""
    due: frozenset[str] = frozenset()
    """Those of its turns that are asked back for who waits."""


def decide(*, slots: int, now: float, mine: Standing, others: Sequence[Standing], rules: Rules) -> Decision:
    """Give the free ones of `slots` to those who wait, the longest waiting first, and say what is mine."""
    everybody = [mine, *others]
    held = _earliest(standing.held for standing in everybody)
    waiting = _earliest(standing.waiting for standing in everybody)
    tenants = _slots_of_tenants(held)
    running, blocked, short = set(held), False, 0
    granted: set[str] = set()
    remaining = dict(waiting)
    while remaining:
        came = {
            name: claim.at
            + rules.tenant_handicap_s * (tenants.get(claim.tenant, 0) - int(name in running and name != BASE))
            for name, claim in remaining.items()
        }
        name = min(came, key=lambda one: (came[one], one))
        claim = remaining.pop(name)
        if name in running:
            young = name not in held or now - held[name].at < rules.turn_s
            if blocked and not young:
                continue
        elif len(running) < slots:
            running.add(name)
            if name != BASE:
                tenants[claim.tenant] = tenants.get(claim.tenant, 0) + 1
        else:
            blocked, short = True, short + 1
            continue
        granted.add(name)
    lasted = [
        name
        for name, claim in held.items()
        if claim.pausable and name not in granted and now - claim.at >= rules.turn_s
    ]
    lasted.sort(key=lambda name: (held[name].at, name))
    return Decision(
        frozenset(granted & mine.waiting.keys()),
        contended=blocked,
        due=frozenset(lasted[:short]) & mine.held.keys(),
    )


def _earliest(claims: Iterable[Mapping[str, Claim]]) -> dict[str, Claim]:
    merged: dict[str, Claim] = {}
    for of_process in claims:
        for name, claim in of_process.items():
            known = merged.get(name, claim)
            merged[name] = Claim(
                known.tenant, min(known.at, claim.at), pausable=known.pausable and claim.pausable
            )
    return merged


def _slots_of_tenants(held: Mapping[str, Claim]) -> dict[str, int]:
    count: dict[str, int] = {}
    for claim in (claim for name, claim in held.items() if name != BASE):
        count[claim.tenant] = count.get(claim.tenant, 0) + 1
    return count
