"""Whose run is next: a deficit round robin over trainer seconds.

M. Shreedhar and G. Varghese, "Efficient Fair Queueing Using Deficit Round Robin" (1995). What a step costs is
known only afterwards, so a tenant is charged then and may go into debt (the "surplus" form of the same): it
is passed over until its quanta have paid for it. Within a round, who was served longest ago comes first.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

Tenant = TypeVar("Tenant", bound=Hashable)
Run = TypeVar("Run")


@dataclass(frozen=True, slots=True)
class Fairness:
    """The round robin's two numbers, seconds."""

    quantum_s: float
    """What every waiting tenant may use in a round. Shorter: finer turns among many short steps."""
    debt_s: float
    """The most that one step can cost its tenant's later turns; longer than the longest ordinary step."""


@dataclass(frozen=True, slots=True)
class Account:
    """How a tenant stands. Times are seconds of one clock, whichever it is."""

    deficit_s: float
    """What it may still use in this round; below 0 it owes."""
    served_at: float = -math.inf
    """When a run of it was last begun."""
    typical_s: float = 0.0
    """What a run of it costs as a rule; 0 where none was measured: then a quantum is assumed."""
    running: int = 0
    """Runs of it that trainers work on now, not charged yet."""

    def owing(self, rules: Fairness) -> float:
        """Return what its running runs will be charged, as far as can be known."""
        return self.running * (self.typical_s or rules.quantum_s)

    def left(self, rules: Fairness) -> float:
        """Return what is left when they have been charged."""
        return self.deficit_s - self.owing(rules)


def opened(rules: Fairness) -> Account:
    """Return the account of a tenant that never had a run."""
    return Account(deficit_s=rules.quantum_s)


def charged(account: Account, seconds: float, rules: Fairness) -> Account:
    """Return the account after a run that took a trainer for `seconds`."""
    typical = seconds if account.typical_s == 0.0 else 0.75 * account.typical_s + 0.25 * seconds
    return replace(account, deficit_s=max(account.deficit_s - seconds, -rules.debt_s), typical_s=typical)


def credited(account: Account, rounds: int, rules: Fairness) -> Account:
    """Return the account after so many rounds. Nothing is saved up beyond one quantum."""
    most = rules.quantum_s + account.owing(rules)
    return replace(account, deficit_s=min(account.deficit_s + rounds * rules.quantum_s, most))


def rounds_until_served(account: Account, rules: Fairness) -> int:
    """Return how many rounds must pass before the tenant may be served; 0: now."""
    left = account.left(rules)
    return 0 if left > 0.0 else math.floor(-left / rules.quantum_s) + 1


def next_tenant(accounts: Mapping[Tenant, Account], rules: Fairness) -> tuple[Tenant, int]:
    """Return which of the waiting tenants is served now, and how many rounds that takes for all of them."""
    order = {tenant: number for number, tenant in enumerate(accounts)}
    tenant = min(
        accounts,
        key=lambda one: (
            rounds_until_served(accounts[one], rules),
            accounts[one].served_at,
            order[one],
        ),
    )
    return tenant, rounds_until_served(accounts[tenant], rules)


@dataclass(frozen=True, slots=True)
class Pick(Generic[Tenant, Run]):
    """A run in its turn; `rounds` have passed for every waiting tenant before it."""

    tenant: Tenant
    run: Run
    rounds: int


def in_turn(
    waiting: Mapping[Tenant, Sequence[Run]],
    accounts: Mapping[Tenant, Account],
    rules: Fairness,
    *,
    now: float,
) -> Iterator[Pick[Tenant, Run]]:
    """Yield the waiting runs in the order in which free trainers are to take them,
    each tenant's in its own order.

    After the first it is a forecast: each run is taken to cost what its tenant's runs cost as a rule.
    """
    queues = {tenant: list(runs) for tenant, runs in waiting.items() if runs}
    books = {tenant: accounts.get(tenant) or opened(rules) for tenant in queues}
    while queues:
        tenant, rounds = next_tenant(books, rules)
        books = {one: credited(account, rounds, rules) for one, account in books.items()}
        yield Pick(tenant, queues[tenant].pop(0), rounds)
        books[tenant] = replace(books[tenant], running=books[tenant].running + 1, served_at=now)
        now = math.nextafter(now, math.inf)
        if not queues[tenant]:
            del queues[tenant], books[tenant]
