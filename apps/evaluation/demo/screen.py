"""What a person sees: live figures on a terminal, plain lines elsewhere, a table at the end."""

import time
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apps.evaluation.chat import RequestLog
from apps.evaluation.demo.board import Board

_SHOWN_NOTES = 12
_LINE_EVERY_S = 15.0


class Screen:
    """Shows the board as it changes. Where there is no terminal, a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=2, auto_refresh=False)
        self._printed = 0
        self._last_line = 0.0

    def __enter__(self) -> "Screen":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, board: Board, log: RequestLog) -> None:
        """Bring the screen up to date."""
        if self._console.is_terminal:
            self._live.update(_picture(board, log), refresh=True)
            return
        for note in board.notes[self._printed :]:
            self._console.print(f"{board.elapsed_s:6.0f} s  {note}", markup=False, soft_wrap=True)
        self._printed = len(board.notes)
        if time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self._console.print(
                f"{board.elapsed_s:6.0f} s  {figures(board, log)}", markup=False, soft_wrap=True
            )


def figures(board: Board, log: RequestLog) -> str:
    """Return the current figures in one line."""
    facts = board.facts
    samples = facts.samples
    return (
        f"{board.phase} · live: version {facts.live} · requests {log.requests} (failed {len(log.failures)})"
        f" · samples ready {facts.ready}, learned from {samples.get('consumed', 0)}"
        f" · training {facts.open_run or 'idle'} · swaps {facts.swaps}"
    )


def _picture(board: Board, log: RequestLog) -> Group:
    clock = Text(f"{board.elapsed_s:.0f} s of {board.budget_s:.0f} s", style="bold")
    notes = Text("\n".join(board.notes[-_SHOWN_NOTES:]), style="dim")
    problem = Text(
        f"last problem: {board.facts.last_problem}" if board.facts.last_problem else "", style="yellow"
    )
    return Group(clock, Text(figures(board, log)), notes, problem)


def print_report(console: Console, report: Mapping[str, Any]) -> None:
    """Print the tables."""
    console.print(_versions_table(report))
    console.print(_summary_table(report))
    console.print(_examples_table(report))
    console.print(Text(report["choice"]))
    missed = [name for name, kept in report["bar"].items() if not kept]
    console.print(Text(f"Missed: {', '.join(missed)}" if missed else "Every promise of the demo was kept."))


def _versions_table(report: Mapping[str, Any]) -> Table:
    table = Table(title="Versions", title_justify="left")
    for name in ("version", "from", "taste", "+ topic", "words", "talk", "hinted", "step s", "reply s"):
        table.add_column(name, justify="right")
    for row in report["versions"]:
        measured = row["validation_of"]
        table.add_row(
            f"{row['number']}{' *' if row['number'] == report['chosen_version'] else ''}",
            str(row["parent"]),
            f"{row['validation_passed']}/{measured}" if measured else "-",
            f"{row['validation_passed_on_topic']}/{measured}" if measured else "-",
            str(row["validation_mean_words"]) if measured else "-",
            f"{row['first_replies_passed']}/{row['first_replies']}" if row["first_replies"] else "-",
            f"{row['samples_with_hint']}/{row['samples']}",
            f"{row['run_seconds']:.0f}",
            "-" if row["feedback_to_reply_s"] is None else f"{row['feedback_to_reply_s']:.0f}",
        )
    table.caption = (
        "* chosen. taste: validation replies as the user wants them; + topic: those of them about the question. "
        "talk: first replies in sessions. hinted: samples of its step with a hint. reply s: from the step's last "
        "feedback to the first reply of the version."
    )
    return table


def _summary_table(report: Mapping[str, Any]) -> Table:
    table = Table(title="One short sentence, please", title_justify="left", show_header=False)
    around = report["first_token_ms"]["trickle"]
    rows = {
        "held-out replies to taste, before": f"{report['before']}/{report['of']} (on topic {report['before_on_topic']})",
        "held-out replies to taste, after": f"{report['after']}/{report['of']} (on topic {report['after_on_topic']}, "
        f"to taste and on topic {report['after_passed_on_topic']})",
        "words a reply, before → after": f"{report['before_mean_words']} → {report['after_mean_words']}",
        "sessions / complaints / thanks": f"{report['sessions']} / {report['complaints']} / {report['thanks']}",
        "turns": ", ".join(f"{count} {kind}" for kind, count in report["turns"].items()),
        "samples": ", ".join(f"{count} {state}" for state, count in report["samples"].items()),
        "swaps / moves back": f"{report['swaps']} / {report['moves_back']}",
        "requests / failed": f"{report['requests']} / {report['failed_requests']}",
        "feedback → improved reply (median)": f"{report['feedback_to_improved_reply_s']} s",
        "time to first token, ms": f"around swaps {_spread(around['around_swaps'])}; otherwise {_spread(around['otherwise'])}",
        "seconds in all": f"{report['seconds']:.0f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _spread(times: Mapping[str, float]) -> str:
    if not times["n"]:
        return "none"
    return (
        f"median {times['median']:.0f}, p95 {times['p95']:.0f}, max {times['max']:.0f} (n {times['n']:.0f})"
    )


def _examples_table(report: Mapping[str, Any]) -> Table:
    table = Table(title="Side by side", title_justify="left", show_lines=True)
    for name in ("question", "version 0", f"version {report['chosen_version']}"):
        table.add_column(name, ratio=1)
    for example in report["examples"][:2]:
        parts = (example["question"], example["before"], example["after"])
        table.add_row(*(Text(shorten(part, 360, placeholder=" …")) for part in parts))
    return table
