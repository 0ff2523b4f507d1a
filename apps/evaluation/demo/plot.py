"""Draw the report: pass rate by version, and what the swaps did to the time to first token."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Write a PNG with the pass rate of every version and its mean reply length."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    rate = figure.subplots()
    measured = [row for row in report["versions"] if row["validation_of"]]
    numbers = [row["number"] for row in measured]
    rate.plot(
        numbers,
        [100 * row["validation_passed"] / row["validation_of"] for row in measured],
        marker="o",
        color="tab:blue",
        label="validation questions",
    )
    rate.plot(
        numbers,
        [100 * row["validation_passed_on_topic"] / row["validation_of"] for row in measured],
        marker=".",
        color="tab:green",
        label="the same, on topic",
    )
    talked = [row for row in report["versions"] if row["first_replies"]]
    rate.plot(
        [row["number"] for row in talked],
        [100 * row["first_replies_passed"] / row["first_replies"] for row in talked],
        linestyle=":",
        color="tab:gray",
        label="first replies in the talk",
    )
    rate.scatter(
        [0, report["chosen_version"]],
        [100 * report["before"] / report["of"], 100 * report["after"] / report["of"]],
        marker="*",
        s=180,
        color="tab:red",
        zorder=3,
        label="held-out questions (version 0 and the one chosen)",
    )
    rate.set(xlabel="adapter version", ylabel="replies to the user's taste, %", ylim=(-3, 103))
    rate.xaxis.set_major_locator(MaxNLocator(integer=True))
    rate.grid(alpha=0.3)
    length = rate.twinx()
    length.plot(
        numbers,
        [row["validation_mean_words"] for row in measured],
        color="tab:orange",
        linestyle="--",
        label="mean words a reply",
    )
    length.set(ylabel="words", ylim=(0, None))
    handles, labels = rate.get_legend_handles_labels()
    more, names = length.get_legend_handles_labels()
    rate.legend(handles + more, labels + names, loc="best", fontsize="small")
    rate.set_title(
        f"One preference, learned from complaints: {report['before']} → {report['after']} of {report['of']}"
        f" in {report['seconds'] / 60:.1f} min, {report['swaps']} swaps, {report['failed_requests']} failed requests",
        fontsize="medium",
    )
    figure.savefig(path, dpi=130)
