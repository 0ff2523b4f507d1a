"""The report as tables: for a terminal, and as markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_INTERVALS = (
    "Intervals are of 95 %: for rates a bootstrap over questions, for sessions one over runs (Efron and Tibshirani 1993);"
    " the JSON beside this page has Wilson's too. A run that did not converge counts as the cap."
)


_PARTS = ("waiting", "working", "choosing")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table before it looks like anything."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets_of(report: Mapping[str, Any]) -> list[Sheet]:
    """Return the report's tables."""
    once = report["mode"] == "once"
    sheets = [
        _once_methods(report) if once else _methods(report),
        _held_out(report),
        _guards(report),
        _idle_minutes(report),
    ]
    claims = tuple(
        ({True: "yes", False: "no", None: "not known yet"}[claim["holds"]], claim["claim"], _figures(claim))
        for claim in report["claims"]
    )
    if claims:
        sheets.append(Sheet("What was to be shown", ("holds", "claim", "figures"), claims))
    return [sheet for sheet in sheets if sheet.rows]


def print_tables(console: Console, report: Mapping[str, Any]) -> None:
    """Print the tables."""
    for sheet in sheets_of(report):
        table = Table(title=sheet.title, title_justify="left")
        for number, name in enumerate(sheet.columns):
            table.add_column(name, justify="left" if number == 0 else "right")
        for row in sheet.rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    if report["missing"]:
        console.print(f"missing: {len(report['missing'])} runs", markup=False)


def as_markdown(report: Mapping[str, Any]) -> str:
    """Return a page with how it came about, the tables, and what is missing."""
    terms = report["terms"]
    capped = ", ".join(f"{most} ({user})" for user, most in report["reply_tokens"].items())
    lines = [
        f"# Personalisation: {'told once' if report['mode'] == 'once' else 'sessions until converged'}",
        "",
        f"`{report['command']}`",
        "",
        "; ".join(
            (
                f"Base model {report['base_model']}{' ' + report['model'] if report['model'] else ''}",
                f"users {', '.join(report['users'])}",
                f"seeds {', '.join(map(str, report['seeds']))}",
                f"{terms['replies']} replies to each of {terms['questions']} questions for reporting",
                f"T = {report['temperature']}, up to {report['max_tokens']} tokens in talk, for reporting {capped}",
                " and ".join(report["machines"]) or report["machine"],
                f"code {', '.join(report['code_versions']) or report['code']}",
            )
        )
        + ".",
        "",
        _INTERVALS,
        "",
    ]
    for sheet in sheets_of(report):
        lines += [f"## {sheet.title}", "", _row(sheet.columns), _row(["---"] * len(sheet.columns))]
        lines += [_row(row) for row in sheet.rows]
        lines.append("")
    if report["missing"]:
        lines += [f"**Not done yet:** {', '.join(report['missing'])}.", ""]
    return "\n".join(lines)


def _methods(report: Mapping[str, Any]) -> Sheet:
    rows = []
    for name, found in report["methods"].items():
        if not found["runs"]:
            continue
        sessions = found["sessions"]
        low, high = sessions["bootstrap"]
        rows.append(
            (
                name,
                f"{found['converged']}/{found['runs']}",
                f"{sessions['mean']:.1f} [{low:.1f}, {high:.1f}]",
                f"{sessions['median']:g}",
                str(found["complaints"]),
                _rate(found["held_out"]),
                _rate(found["as_served"]),
            )
        )
    return Sheet(
        f"Sessions until {report['terms']['in_a_row']} first replies in a row pass (cap {report['terms']['cap']})",
        (
            "method",
            "converged",
            "sessions, mean",
            "median",
            "complaints",
            "held out, un-hinted",
            "held out, as served",
        ),
        tuple(rows),
    )


def _once_methods(report: Mapping[str, Any]) -> Sheet:
    rows = [
        (
            name,
            str(found["complaints"]),
            _rate(found["first_request"]),
            _rate(found["held_out"]),
            f"{found['still_told']}/{found['runs']}",
        )
        for name, found in report["methods"].items()
        if found["runs"]
    ]
    return Sheet(
        f"One complaint, then {report['terms']['idle_minutes']:g} idle minutes",
        (
            "method",
            "complaints",
            "first request after it",
            "at the end, un-hinted",
            "runs where it is still told",
        ),
        tuple(rows),
    )


def _idle_minutes(report: Mapping[str, Any]) -> Sheet:
    """Return what became of each run's idle minutes."""
    rows = []
    for run in report["runs"]:
        idled = run["idled"]
        if not idled or not idled["account"]:
            continue
        account = idled["account"]
        lesson, steps, shadow = account["lesson"], account["steps"], account["shadow"]
        rows.append(
            (
                f"{run['method']}/{run['user']}/{run['seed']}",
                f"{shadow['replies']} ({shadow['tokens']} tokens)",
                # what was measured before pauses were noted has none
                str(sum(steps["by_state"].values())) + (", then paused" if account.get("paused") else ""),
                str(len(idled["live"]) - 1),
                " / ".join(
                    "-" if steps[f"{name}_s"] is None else f"{steps[f'{name}_s']:g}" for name in _PARTS
                ),
                " ".join(f"{step['passes']}/{step['of']}" for step in lesson["course"]),
                f"{run['held_out']['passed']}/{run['held_out']['of']}",
            )
        )
    return Sheet(
        "What the idle minutes went to",
        (
            "run",
            "shadow replies",
            "steps",
            "versions live",
            "step waits / works / is chosen, median s",
            "passes of the choosing questions, by version",
            "reporting",
        ),
        tuple(rows),
    )


def _held_out(report: Mapping[str, Any]) -> Sheet:
    names = [name for name, found in report["methods"].items() if found["runs"]]
    rows = [
        (
            user,
            _rate(report["frozen_base"][user]),
            *(_rate(report["methods"][name]["by_user"][user]) for name in names),
            _rate(report["hinted_teacher"][user]),
        )
        for user in report["users"]
        if report["frozen_base"][user]["of"]
    ]
    return Sheet(
        "Questions for reporting, un-hinted", ("user", "base", *names, "hinted teacher"), tuple(rows)
    )


def _guards(report: Mapping[str, Any]) -> Sheet:
    rows = []
    for name, found in report["methods"].items():
        guards = found["guards"]
        if "on_topic" not in guards:
            continue
        rows.append(
            (
                name,
                *(_guard(guards[guard]) for guard in ("on_topic", "not_empty", "no_loop")),
                "-" if guards["length_ratio"] is None else f"{guards['length_ratio']:.2f}",
                str(guards["failed_requests"]),
            )
        )
    return Sheet(
        "Guards (rate, and the frozen base's)",
        ("method", "on topic", "not empty", "no loop", "length / base", "failed requests"),
        tuple(rows),
    )


def _guard(found: Mapping[str, Any]) -> str:
    return f"{found['rate']:.2f} ({found['base']:.2f}){'' if found['holds'] else ' broken'}"


def _rate(found: Mapping[str, Any]) -> str:
    if not found["of"]:
        return "-"
    low, high = found["bootstrap"]
    return f"{found['passed']}/{found['of']} [{low:.2f}, {high:.2f}]"


def _figures(claim: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in claim.items() if name not in ("claim", "holds"))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
