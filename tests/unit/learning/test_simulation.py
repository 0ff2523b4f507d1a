"""The schedule on a virtual clock: that it plays the rules, loses nothing,
and what it says of floods and of waiting."""

import math
import statistics
from collections import Counter

import pytest

from apps.learning.rules.batch import Order
from apps.learning.rules.staleness import Staleness
from apps.learning.simulation.grid import measure, orders, try_all
from apps.learning.simulation.trace import LONGEST_S, SHORTEST_S, Load, heavy_tailed, poisson
from apps.learning.simulation.world import Costs, Outcome, Setting, World, synchronously

WINDOW = Order("windowed", 38)
COSTS = Costs(step_s=10.0, publish_s=5.0, judge_s=1.0)


def play(
    loads: list[Load], *, eta: int = 4, order: Order = WINDOW, enough: float = math.inf, **more: object
) -> Outcome:
    setting = Setting(order, Staleness(eta), 8, **more)  # type: ignore[arg-type]
    return World(loads, setting, COSTS, enough=enough).run()


def test_durations_are_heavy_tailed_within_their_bounds_and_the_same_for_a_seed() -> None:
    durations = heavy_tailed(5000, seed=1)
    assert durations == heavy_tailed(5000, seed=1) != heavy_tailed(5000, seed=2)
    assert min(durations) >= SHORTEST_S
    assert 1000 < max(durations) <= LONGEST_S
    longest = sorted(durations)[-500:]
    assert sum(longest) > 0.4 * sum(durations)


@pytest.mark.parametrize("order", [*orders(128, [0.05, 0.3, 1.0]).values()])
@pytest.mark.parametrize("eta", [0, 1, 4])
@pytest.mark.parametrize("slots", [4, 16, 64])
def test_no_choice_stands_still_and_every_turn_is_trained_once_or_dropped(
    order: Order, eta: int, slots: int
) -> None:
    outcome = play([Load("t", heavy_tailed(600, seed=3), slots=slots)], eta=eta, order=order)
    assert len(outcome.turns) == 600
    kinds = Counter(
        "trained" if turn in outcome.trained else "dropped" if turn.dropped else "left"
        for turn in outcome.turns
    )
    # what is left at the very end is less than a batch, or stands behind a window that nothing follows
    assert kinds["left"] < 8
    assert kinds["trained"] == 8 * outcome.steps
    assert all(0 <= turn.staleness <= eta for turn in outcome.trained)
    assert all(turn.began_s <= turn.ready_s <= turn.trained_s for turn in outcome.trained)


def test_without_staleness_the_loop_is_the_synchronous_one() -> None:
    durations = heavy_tailed(800, seed=1)
    outcome = play([Load("t", durations, slots=16)], eta=0, enough=400)
    by_turns = synchronously(durations, slots=16, batch=8, costs=COSTS, enough=400)
    # the last version need not answer before the last turn counts as trained
    assert outcome.wall_s == pytest.approx(by_turns - COSTS.publish_s)
    assert {turn.staleness for turn in outcome.trained} == {0}


def test_synchronously_by_hand() -> None:
    # two slots, batches of four: 10+1 | 2+30 -> 32; then 5, 5, 5, 5 -> 10; each with 1 + 10 + 5 on top
    durations = [10.0, 2.0, 30.0, 1.0, 5.0, 5.0, 5.0, 5.0]
    assert synchronously(durations, slots=2, batch=4, costs=COSTS, enough=8) == (32 + 16) + (10 + 16)


def test_more_staleness_is_faster_and_a_wider_window_too() -> None:
    load = Load("t", heavy_tailed(2400, seed=1), slots=16)
    cells = try_all(load, COSTS, batch=8, enough=800, choices=orders(128, [0.3]), etas=[0, 1, 4])
    hours = {(cell.label, cell.eta): cell.wall_s for cell in cells}
    for label in ("strict", "f 0.3", "greedy"):
        assert hours[label, 0] > hours[label, 1] > hours[label, 4]
    assert hours["strict", 4] > hours["f 0.3", 4] > hours["greedy", 4]
    found = {(cell.label, cell.eta): cell for cell in cells}
    assert found["greedy", 4].bias[-1] < found["f 0.3", 4].bias[-1]
    assert found["f 0.3", 4].ratio <= 1 / 3
    assert all(sum(cell.staleness.values()) == cell.trained == 800 for cell in cells)


def test_ten_thousand_turns_of_one_tenant_leave_the_median_wait_of_another_within_a_fifth() -> None:
    """Live turns of a quiet tenant, one each half minute, alone and while another has 10,000 waiting.

    One trainer.
    """
    quiet = Load("quiet", arrivals=[(at, 5.0) for at in poisson(400, every_s=30.0, seed=5)])
    flood = Load("flood", arrivals=[(0.0, 1.0)] * 10_000)
    waits = {}
    for name, loads in (("alone", [quiet]), ("flooded", [flood, quiet])):
        outcome = play(loads, eta=100_000)
        waits[name] = [turn.trained_s - turn.ready_s for turn in outcome.trained if turn.tenant == "quiet"]
    assert len(waits["alone"]) == len(waits["flooded"]) == 400
    assert statistics.median(waits["flooded"]) <= 1.2 * statistics.median(waits["alone"])


def test_past_the_bound_turns_are_dropped_and_counted() -> None:
    # one rollout takes as long as many steps of the others
    durations = [2000.0, *[10.0] * 400]
    load = Load("t", durations, slots=8)
    outcome = play([load], eta=2, order=Order("greedy", 1))
    dropped = [turn.number for turn in outcome.turns if turn.dropped]
    assert dropped[0] == 0
    cell = measure(outcome, load, label="greedy", order=Order("greedy", 1), eta=2, synchronous_s=math.nan)
    assert (cell.dropped, cell.trained) == (len(dropped), len(outcome.trained))
    assert cell.dropped + cell.trained >= 401 - 7


def test_a_small_tenant_is_flushed_by_the_clock() -> None:
    outcome = play([Load("small", arrivals=[(0.0, 1.0), (5.0, 1.0)])], flush_s=60.0)
    assert [turn.trained_s for turn in outcome.trained] == [2.0 + 60.0 + 10.0] * 2
