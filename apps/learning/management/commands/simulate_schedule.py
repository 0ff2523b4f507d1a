"""Replay a trace of turns through the scheduler, for a grid of windows and bounds."""

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.adapters.models import Policy
from apps.learning.rules.staleness import Staleness
from apps.learning.simulation.grid import Cell, orders, try_all
from apps.learning.simulation.plots import draw
from apps.learning.simulation.recorded import recorded
from apps.learning.simulation.trace import Load, heavy_tailed
from apps.learning.simulation.world import Costs
from kernel.tenancy import system_scope

EXAMPLES = """
examples:
  manage.py simulate_schedule
      a synthetic trace: rollouts of 2 s to 30 min, heavy-tailed, the same for the same --seed
  manage.py simulate_schedule --window 0.1 0.3 1 --eta 1 4 8 --plot docs
      chosen windows and bounds; writes docs/schedule-*.png
  manage.py simulate_schedule --from-ledger --tenant acme --policy default --step-s 22 --slots 16 --json -
      the turns that a policy had, as rollouts sixteen at a time; JSON on standard output
  manage.py simulate_schedule --from-ledger --tenant acme --policy default --as-recorded
      the same turns when they came

Read docs/schedule.md for how to choose from the figures.
"""
HEAD = (
    "order",
    "W",
    "eta",
    "trained",
    "hours",
    "of sync",
    "staleness",
    "wait p50",
    "p95 s",
    "dropped",
    "longest ¼",
)


class Command(BaseCommand):
    """Try windows and staleness bounds on a virtual clock, with the scheduler's own rules."""

    help = __doc__

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser with the examples below the options."""
        return super().create_parser(
            prog_name,
            subcommand,
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **kwargs,
        )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        trace = parser.add_argument_group("trace")
        trace.add_argument("--from-ledger", action="store_true", help="the turns that a policy had")
        trace.add_argument("--tenant", help="its tenant's slug, with --from-ledger")
        trace.add_argument("--policy", default="default", help="its name, with --from-ledger")
        trace.add_argument("--as-recorded", action="store_true", help="turns come when they came")
        trace.add_argument("--turns", type=int, default=1600, help="trained turns wanted (default 1600)")
        trace.add_argument("--seed", type=int, default=1, help="of the synthetic trace (default 1)")
        trace.add_argument(
            "--median-s", type=float, default=20.0, help="median of its durations (default 20)"
        )
        trace.add_argument(
            "--sigma", type=float, default=1.5, help="of the log-normal: its tail (default 1.5)"
        )
        trace.add_argument("--slots", type=int, default=16, help="rollouts at once (default 16)")
        costs = parser.add_argument_group("costs, seconds")
        costs.add_argument("--step-s", type=float, default=20.0, help="a training step (default 20)")
        costs.add_argument(
            "--publish-s", type=float, default=5.0, help="until its version answers (default 5)"
        )
        costs.add_argument("--judge-s", type=float, default=1.0, help="a judgement (default 1)")
        tried = parser.add_argument_group("what is tried")
        tried.add_argument(
            "--batch", type=int, default=settings.TRAINING_BATCH, help="B (default %(default)s)"
        )
        tried.add_argument("--buffer", type=int, default=128, help="N (default 128)")
        tried.add_argument("--window", type=float, nargs="+", default=[0.1, 0.3, 0.6], metavar="F")
        tried.add_argument("--eta", type=int, nargs="+", default=[0, 1, 2, 4, 8])
        tried.add_argument("--past", choices=("drop", "down_weight"), default="drop", help="past the bound")
        parser.add_argument(
            "--json", metavar="FILE", help="write the figures there, or to standard output: -"
        )
        parser.add_argument("--plot", type=Path, metavar="DIRECTORY", help="write schedule-*.png there")

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the grid; print, and write what was asked for."""
        _check(options)
        load = self._load(options)
        length = len(load.durations_s) or len(load.arrivals)
        if length < options["batch"]:
            raise CommandError(f"a trace of {length} turns has not one batch of {options['batch']}")
        # what is still being written at the end is not trained,
        # so a trace is longer than what is wanted of it
        enough = min(options["turns"], length // 2 if load.durations_s else length)
        choices = orders(options["buffer"], options["window"])
        quiet = options["json"] == "-"
        total, done = len(choices) * len(options["eta"]), 0

        def told(_: Cell) -> None:
            nonlocal done
            done += 1
            if self.stderr.isatty():
                self.stderr.write(f"\r{done} of {total}", ending="\n" if done == total else "")

        cells = try_all(
            load,
            Costs(options["step_s"], options["publish_s"], options["judge_s"]),
            batch=options["batch"],
            enough=max(options["batch"], enough // options["batch"] * options["batch"]),
            choices=choices,
            etas=sorted(set(options["eta"])),
            past=Staleness(0, past=options["past"]),
            told=told,
        )
        if not quiet:
            self._table(load, cells)
        if options["json"]:
            text = json.dumps(_document(load, options, cells), indent=2)
            if quiet:
                self.stdout.write(text)
            else:
                Path(options["json"]).write_text(text + "\n", encoding="utf-8")
        if options["plot"]:
            for file in draw(cells, options["plot"]):
                (self.stderr if quiet else self.stdout).write(str(file))

    def _load(self, options: dict[str, Any]) -> Load:
        if not options["from_ledger"]:
            # twice and more of what is wanted: drops and what is under way at the end come on top
            count = 3 * options["turns"]
            durations = heavy_tailed(
                count, seed=options["seed"], median_s=options["median_s"], sigma=options["sigma"]
            )
            return Load("synthetic", durations_s=durations, slots=options["slots"])
        with system_scope("simulate_schedule"):
            policy = (
                Policy.objects.select_related("tenant")
                .filter(tenant__slug=options["tenant"], name=options["policy"])
                .first()
            )
            if policy is None:
                raise CommandError(
                    f"there is no policy {options['policy']!r} of a tenant {options['tenant']!r}"
                )
            return recorded(
                policy, slots=options["slots"], as_recorded=options["as_recorded"], limit=3 * options["turns"]
            )

    def _table(self, load: Load, cells: list[Cell]) -> None:
        durations = load.durations_s or [seconds for _, seconds in load.arrivals]
        self.stdout.write(
            f"{load.tenant}: {len(durations)} turns, {min(durations):.0f} to {max(durations):.0f} s, median "
            f"{statistics.median(durations):.0f} s, mean {statistics.fmean(durations):.0f} s"
        )
        if not math.isnan(cells[0].synchronous_s):
            self.stdout.write(
                f"the same turns synchronously: {cells[0].synchronous_s / 3600:.2f} h for {cells[0].trained}"
            )
        self.stdout.write("".join(f"{name:>11}" for name in HEAD))
        for cell in cells:
            row = (
                cell.label, cell.window or "-", cell.eta, cell.trained, f"{cell.wall_s / 3600:.2f}", f"{cell.ratio:.2f}",
                f"{cell.staleness_mean:.2f}", f"{cell.wait_median_s:.0f}", f"{cell.wait_p95_s:.0f}", cell.dropped,
                f"{cell.bias[-1]:.0%}" if cell.bias else "-",
            )  # fmt: skip
            self.stdout.write("".join(f"{value!s:>11}" for value in row))


def _check(options: dict[str, Any]) -> None:
    bounds = {
        "turns": (1, 1_000_000), "median_s": (2.0, 1800.0), "sigma": (0.0, 3.0), "slots": (1, 10_000),
        "step_s": (0.0, 86_400.0), "publish_s": (0.0, 86_400.0), "judge_s": (0.0, 86_400.0), "batch": (1, 4096),
        "buffer": (1, 65_536),
    }  # fmt: skip
    for name, (low, high) in bounds.items():
        if not low <= options[name] <= high:
            raise CommandError(f"--{name.replace('_', '-')} lies between {low:g} and {high:g}")
    if not all(0.0 <= fraction <= 1.0 for fraction in options["window"]):
        raise CommandError("--window lies between 0 and 1")
    if not all(0 <= eta <= 1000 for eta in options["eta"]):
        raise CommandError("--eta lies between 0 and 1000")
    if options["from_ledger"] and not options["tenant"]:
        raise CommandError("--from-ledger needs --tenant")


def _document(load: Load, options: dict[str, Any], cells: list[Cell]) -> dict[str, Any]:
    asked = (
        "turns",
        "seed",
        "median_s",
        "sigma",
        "slots",
        "step_s",
        "publish_s",
        "judge_s",
        "batch",
        "buffer",
        "past",
    )
    return {
        "trace": load.tenant,
        "asked": {name: options[name] for name in asked},
        "cells": [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in cell.to_json().items()
            }
            for cell in cells
        ],
    }
