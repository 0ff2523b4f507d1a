"""Pictures of a grid, one for each question that a choice of W and η asks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from apps.learning.simulation.grid import Cell

Draw = Callable[[Any, Sequence[Cell]], None]


def draw(cells: Sequence[Cell], directory: Path) -> list[Path]:
    """Write `schedule-<kind>.png` for each kind into a directory, and return the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for kind, one in KINDS.items():
        figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
        one(axes, cells)
        axes.spines[["top", "right"]].set_visible(False)
        files.append(directory / f"schedule-{kind}.png")
        figure.savefig(files[-1], dpi=110, metadata={"Software": None})
        plt.close(figure)
    return files


def _lines(
    axes: Any, cells: Sequence[Cell], value: Callable[[Cell], float], *, title: str, unit: str
) -> None:
    """One line for each order, over η."""
    for label in dict.fromkeys(cell.label for cell in cells):
        own = [cell for cell in cells if cell.label == label]
        axes.plot([cell.eta for cell in own], [value(cell) for cell in own], marker="o", label=_named(own[0]))
    axes.set_xticks(sorted({cell.eta for cell in cells}))
    axes.set_xlabel("largest staleness η, steps")
    axes.set_ylabel(unit)
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.legend()


def _wall_clock(axes: Any, cells: Sequence[Cell]) -> None:
    _lines(
        axes,
        cells,
        lambda cell: cell.wall_s / 3600,
        title="Wall clock to the same trained turns",
        unit="hours",
    )
    axes.axhline(cells[0].synchronous_s / 3600, color="black", linestyle="--", label="synchronous")
    axes.legend()


def _staleness(axes: Any, cells: Sequence[Cell]) -> None:
    _lines(
        axes, cells, lambda cell: cell.staleness_mean, title="Mean staleness of trained turns", unit="steps"
    )


def _waits(axes: Any, cells: Sequence[Cell]) -> None:
    _lines(
        axes,
        cells,
        lambda cell: cell.wait_p95_s,
        title="Wait from ready to trained, 95th percentile",
        unit="seconds",
    )


def _drops(axes: Any, cells: Sequence[Cell]) -> None:
    _lines(
        axes, cells, lambda cell: 100 * cell.dropped / max(1, cell.trained + cell.dropped),
        title="Dropped as too stale", unit="% of the turns that were ready",
    )  # fmt: skip


def _bias(axes: Any, cells: Sequence[Cell]) -> None:
    _lines(
        axes, cells, lambda cell: 100 * cell.bias[-1] if cell.bias else 0.0,
        title="Turns of the longest quarter among the trained", unit="%; 25 is no bias",
    )  # fmt: skip
    axes.axhline(25, color="black", linestyle="--")


def _named(cell: Cell) -> str:
    return cell.label if cell.window is None else f"{cell.label} (W = {cell.window})"


KINDS: dict[str, Draw] = {
    "wall-clock": _wall_clock,
    "staleness": _staleness,
    "waits": _waits,
    "drops": _drops,
    "bias": _bias,
}
