"""`manage.py demo`: a scripted user says once what they want, or talks until a policy has learned it."""

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from apps.evaluation.beside import INTERRUPTED, handed_stack, innermost, run_beside
from apps.evaluation.demo import once_report
from apps.evaluation.demo.course import run_course, run_once
from apps.evaluation.demo.plot import draw
from apps.evaluation.demo.screen import print_report
from apps.evaluation.stack import Stack
from kernel.errors import AttuneError


class Command(BaseCommand):
    """Run the demo, print its tables, write demo-report.json (and, with --talk, demo-report.png);
    fail if the bar is missed."""

    help = (
        "A scripted user who wants one short sentence says so once, through the public API and in plain words: the next "
        "reply is told, then the weights of a policy of its own take it over while nobody talks. With --talk they complain "
        "in session after session, and nothing is remembered but by the weights. Uses the running platform, or starts one."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--minutes", type=float, default=18.0, help="Time for everything (default 18).")
        parser.add_argument("--seed", type=int, default=1, help="Order and wording of what the user says.")
        parser.add_argument(
            "--talk", action="store_true", help="Many sessions of complaints instead of telling it once."
        )
        parser.add_argument(
            "--resume", action="store_true", help="With --talk: go on with the last demo's policy."
        )
        parser.add_argument("--json", action="store_true", help="Only the report on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        if not 1 <= options["minutes"] <= 24 * 60:
            raise CommandError("--minutes lies between 1 and 1440")
        if options["resume"] and not options["talk"]:
            raise CommandError("--resume goes with --talk: what was told once cannot be told again")
        console = Console(stderr=options["json"])
        logging.getLogger("httpx").setLevel(
            logging.WARNING
        )  # a line for every request would bury the progress
        if stack := handed_stack():
            status = _inside(stack, options, console)
        else:
            status = run_beside(
                "demo",
                _arguments(options),
                say=lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True),
            )
        if status:
            sys.exit(status)


def _inside(stack: Stack, options: dict[str, Any], console: Console) -> int:
    talk = options["talk"]
    given = {"stack": stack, "minutes": options["minutes"], "seed": options["seed"], "console": console}
    try:
        report = run_course(**given, resume=options["resume"]) if talk else run_once(**given)
    except AttuneError as error:
        raise CommandError(error.message) from error
    except ExceptionGroup as group:
        raise CommandError(f"the demo broke off: {innermost(group)}") from group
    except KeyboardInterrupt:
        goes_on = "the same command with --resume goes on" if talk else "the same command begins anew"
        console.print(f"interrupted: {goes_on}", markup=False)
        return INTERRUPTED
    home: Path = settings.ATTUNE_HOME
    (home / "demo-report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False), encoding="utf-8")
    if talk:
        draw(report, home / "demo-report.png")
    if options["json"]:
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    elif talk:
        print_report(console, report)
        console.print(
            f"{home / 'demo-report.json'}\n{home / 'demo-report.png'}", markup=False, soft_wrap=True
        )
    else:
        once_report.print_report(console, report)
        console.print(str(home / "demo-report.json"), markup=False, soft_wrap=True)
    return 0 if all(report["bar"].values()) else 1


def _arguments(options: dict[str, Any]) -> list[str]:
    given = ["--minutes", str(options["minutes"]), "--seed", str(options["seed"])]
    return given + [f"--{name}" for name in ("talk", "resume", "json") if options[name]]
