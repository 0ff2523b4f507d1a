"""What a schedule does to a trace, in figures:
staleness, waits, drops, and which durations are trained on."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apps.learning.rules.batch import Order, window_size
from apps.learning.rules.staleness import Staleness
from apps.learning.simulation.trace import Load
from apps.learning.simulation.world import Costs, Outcome, Setting, World, synchronously

QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """One choice of window and staleness bound."""

    label: str
    """The order in words: "strict", "f 0.3" (W from N), "greedy"."""
    window: int | None
    eta: int
    trained: int
    wall_s: float
    synchronous_s: float
    ratio: float
    """Asynchronous to synchronous wall clock; below 1 is faster."""
    staleness: dict[int, int]
    """Trained turns by staleness, steps."""
    staleness_mean: float
    wait_median_s: float
    """From ready to trained."""
    wait_p95_s: float
    dropped: int
    refused: int
    """How often a free slot was not allowed to begin a rollout."""
    bias: tuple[float, ...]
    """Trained turns among those whose duration is in each quarter of the trace's,
    shortest first; 0.25 each: no bias."""
    duration_ratio: float
    """Mean duration of what was trained to that of the trace; below 1: short turns are preferred."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return asdict(self)


def orders(buffer: int, fractions: Sequence[float]) -> dict[str, Order]:
    """Return the orders to try by their names: strict, each window, greedy."""
    found = {"strict": Order("strict", 1)}
    for fraction in fractions:
        found[f"f {fraction:g}"] = Order("windowed", window_size(buffer, fraction))
    return {**found, "greedy": Order("greedy", 1)}


def try_all(
    load: Load,
    costs: Costs,
    *,
    batch: int,
    enough: int,
    choices: Mapping[str, Order],
    etas: Sequence[int],
    past: Staleness | None = None,
    told: Callable[[Cell], None] = lambda _: None,
) -> list[Cell]:
    """Return a cell for each order and each staleness bound, in that order;
    `told` hears of each when it is done.

    `past` says what happens to a sample past the bound (only its `past` counts).
    """
    synchronous_s = (
        synchronously(load.durations_s, slots=load.slots, batch=batch, costs=costs, enough=enough)
        if load.slots
        else math.nan
    )
    cells = []
    for label, order in choices.items():
        for eta in etas:
            staleness = Staleness(most=eta, past=past.past if past else "drop")
            outcome = World([load], Setting(order, staleness, batch), costs, enough=enough).run()
            cells.append(
                measure(outcome, load, label=label, order=order, eta=eta, synchronous_s=synchronous_s)
            )
            told(cells[-1])
    return cells


def measure(
    outcome: Outcome, load: Load, *, label: str, order: Order, eta: int, synchronous_s: float
) -> Cell:
    """Return what an outcome shows."""
    trained = outcome.trained
    waits = sorted(turn.trained_s - turn.ready_s for turn in trained)
    ages = [turn.staleness for turn in trained]
    everything = sorted(load.durations_s) or sorted(seconds for _, seconds in load.arrivals)
    bounds = statistics.quantiles(everything, n=QUARTERS) if len(everything) > 1 else []
    durations = [turn.duration_s for turn in trained]
    return Cell(
        label=label,
        window=order.window if order.mode == "windowed" else None,
        eta=eta,
        trained=len(trained),
        wall_s=outcome.wall_s,
        synchronous_s=synchronous_s,
        ratio=outcome.wall_s / synchronous_s if synchronous_s else math.nan,
        staleness={age: ages.count(age) for age in sorted(set(ages))},
        staleness_mean=statistics.fmean(ages) if ages else math.nan,
        wait_median_s=statistics.median(waits) if waits else math.nan,
        wait_p95_s=waits[int(0.95 * (len(waits) - 1))] if waits else math.nan,
        dropped=sum(turn.dropped for turn in outcome.turns),
        refused=outcome.refused,
        bias=_shares(durations, bounds),
        duration_ratio=statistics.fmean(durations) / statistics.fmean(everything) if durations else math.nan,
    )


def _shares(durations: Sequence[float], bounds: Sequence[float]) -> tuple[float, ...]:
    if not durations or not bounds:
        return ()
    counts = [0] * (len(bounds) + 1)
    for seconds in durations:
        counts[sum(seconds > bound for bound in bounds)] += 1
    return tuple(count / len(durations) for count in counts)
