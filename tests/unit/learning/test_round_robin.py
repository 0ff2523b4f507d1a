"""Whose run is next: shares, debts, turns."""

import math
from collections import Counter
from dataclasses import replace
from itertools import islice

from apps.learning.rules.round_robin import (
    Account,
    Fairness,
    charged,
    credited,
    in_turn,
    next_tenant,
    opened,
    rounds_until_served,
)

RULES = Fairness(quantum_s=10.0, debt_s=100.0)


def shares(costs: dict[str, float], steps: int, *, start: dict[str, Account] | None = None) -> Counter[str]:
    """Serve tenants that always have a run waiting, each with its own cost; return the seconds of each."""
    books = {tenant: (start or {}).get(tenant, opened(RULES)) for tenant in costs}
    seconds: Counter[str] = Counter()
    for number in range(steps):
        tenant, rounds = next_tenant(books, RULES)
        books = {one: credited(account, rounds, RULES) for one, account in books.items()}
        books[tenant] = replace(charged(books[tenant], costs[tenant], RULES), served_at=float(number))
        seconds[tenant] += costs[tenant]  # type: ignore[assignment]
    return seconds


def test_tenants_that_always_wait_get_the_same_seconds_whatever_their_steps_cost() -> None:
    seconds = shares({"short": 1.0, "middle": 7.0, "long": 50.0}, 5000)
    assert max(seconds.values()) - min(seconds.values()) <= 50.0 + RULES.quantum_s


def test_equal_steps_are_taken_in_turns() -> None:
    runs = {"a": list(range(4)), "b": list(range(4)), "c": list(range(2))}
    order = [pick.tenant for pick in in_turn(runs, {}, RULES, now=0.0)]
    assert order == ["a", "b", "c", "a", "b", "c", "a", "b", "a", "b"]


def test_a_flood_of_one_tenant_puts_anothers_first_run_behind_one_at_most() -> None:
    flooding = Account(deficit_s=3.0, served_at=5.0, typical_s=4.0, running=1)
    picks = islice(
        in_turn({"flood": list(range(10_000)), "quiet": ["mine"]}, {"flood": flooding}, RULES, now=6.0), 2
    )
    assert [pick.tenant for pick in picks] == ["quiet", "flood"]


def test_a_run_on_another_trainer_counts_before_it_is_charged() -> None:
    busy = Account(deficit_s=10.0, served_at=0.0, typical_s=12.0, running=1)
    idle = Account(deficit_s=10.0, served_at=9.0)
    assert next_tenant({"busy": busy, "idle": idle}, RULES) == ("idle", 0)
    assert next_tenant({"busy": replace(busy, running=0), "idle": idle}, RULES) == ("busy", 0)


def test_debt_is_paid_in_rounds_and_bounded() -> None:
    owing = charged(opened(RULES), 45.0, RULES)
    assert (owing.deficit_s, rounds_until_served(owing, RULES)) == (-35.0, 4)
    assert credited(owing, 4, RULES).deficit_s == 5.0
    assert charged(owing, 1e9, RULES).deficit_s == -100.0
    assert rounds_until_served(charged(owing, 1e9, RULES), RULES) == 11


def test_nothing_is_saved_up_while_nothing_waits() -> None:
    assert credited(opened(RULES), 1000, RULES).deficit_s == 10.0
    # a night alone leaves the one that worked with no more debt than its last step
    alone = shares({"a": 50.0}, 100)
    assert alone == Counter(a=5000.0)
    late = shares({"a": 50.0, "b": 50.0}, 10, start={"a": replace(opened(RULES), deficit_s=-40.0)})
    assert late == Counter(a=250.0, b=250.0)


def test_what_a_run_costs_as_a_rule_follows_what_was_measured() -> None:
    account = charged(opened(RULES), 8.0, RULES)
    assert account.typical_s == 8.0
    assert charged(account, 4.0, RULES).typical_s == 7.0


def test_who_was_never_served_comes_first_and_a_zero_step_costs_nothing() -> None:
    known = Account(deficit_s=10.0, served_at=1.0)
    assert next_tenant({"known": known, "new": opened(RULES)}, RULES) == ("new", 0)
    assert opened(RULES).served_at == -math.inf
    assert charged(known, 0.0, RULES).deficit_s == 10.0
