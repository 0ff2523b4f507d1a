"""Draw the report: pass rate by session, sessions until converged, held-out rates with their intervals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Write a PNG. Told once there are no sessions: the bars alone are drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    once = report["mode"] == "once"
    figure = Figure(figsize=(8, 4.5) if once else (15, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = [figure.subplots()] if once else list(figure.subplots(1, 3))
    if not once:
        _by_session(panels[0], report)
        _until_converged(panels[1], report)
    _held_out(panels[-1], report)
    seeds = ", ".join(map(str, report["seeds"]))
    figure.suptitle(
        f"{report['base_model']}; users {', '.join(report['users'])}; seeds {seeds}", fontsize="small"
    )
    figure.savefig(path, dpi=130)


def _by_session(panel: Any, report: Mapping[str, Any]) -> None:
    for name, found in report["methods"].items():
        rates = found["pass_rate_by_session"]
        if rates:
            panel.plot(range(1, len(rates) + 1), [100 * rate for rate in rates], marker=".", label=name)
    panel.set(xlabel="session", ylabel="first replies that pass, % of runs", ylim=(-3, 103))
    panel.set_title("Pass rate by session (a content user stays content)", fontsize="medium")
    panel.grid(alpha=0.3)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(fontsize="small")


def _until_converged(panel: Any, report: Mapping[str, Any]) -> None:
    done = {name: found for name, found in report["methods"].items() if found["runs"]}
    for at, (name, found) in enumerate(done.items()):
        mean, (low, high) = found["sessions"]["mean"], found["sessions"]["bootstrap"]
        panel.bar(at, mean, yerr=[[max(0.0, mean - low)], [max(0.0, high - mean)]], capsize=4, alpha=0.7)
        every = [run["sessions"] for run in report["runs"] if run["method"] == name]
        panel.scatter([at] * len(every), every, color="black", s=12, zorder=3)
    panel.set_xticks(range(len(done)), list(done), rotation=20)
    panel.set(ylabel="sessions", ylim=(0, report["terms"]["cap"] * 1.05))
    panel.set_title("Sessions until converged: mean, 95 %, each run", fontsize="medium")
    panel.grid(alpha=0.3, axis="y")


def _held_out(panel: Any, report: Mapping[str, Any]) -> None:
    groups: dict[str, Mapping[str, Mapping[str, Any]]] = {"frozen base": report["frozen_base"]}
    groups |= {name: found["by_user"] for name, found in report["methods"].items() if found["runs"]}
    groups["hinted teacher"] = report["hinted_teacher"]
    width = 0.8 / len(groups)
    for number, (name, by_user) in enumerate(groups.items()):
        known = [(at, by_user[user]) for at, user in enumerate(report["users"]) if by_user[user]["of"]]
        rates = [100 * found["rate"] for _, found in known]
        bounds = [[100 * value for value in found["bootstrap"]] for _, found in known]
        panel.bar(
            [at + (number - (len(groups) - 1) / 2) * width for at, _ in known],
            rates,
            width,
            yerr=[
                [max(0.0, rate - low) for rate, (low, _) in zip(rates, bounds, strict=True)],
                [max(0.0, high - rate) for rate, (_, high) in zip(rates, bounds, strict=True)],
            ],
            capsize=2,
            label=name,
        )
    panel.set_xticks(range(len(report["users"])), report["users"], rotation=20)
    panel.set(ylabel="replies that pass, %", ylim=(0, 105))
    panel.set_title("Questions for reporting, un-hinted, with 95 %", fontsize="medium")
    panel.grid(alpha=0.3, axis="y")
    panel.legend(fontsize="x-small")
