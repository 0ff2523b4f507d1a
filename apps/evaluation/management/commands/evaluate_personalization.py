"""`manage.py evaluate_personalization`: scripted users, methods side by side,
how many sessions each needs."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from apps.evaluation.beside import INTERRUPTED, handed_stack, innermost, run_beside
from apps.evaluation.operating import await_engine
from apps.evaluation.personalization.circumstances import circumstances, code_version
from apps.evaluation.personalization.course import carry_out
from apps.evaluation.personalization.estimate import estimate
from apps.evaluation.personalization.journal import Journal, Past, past_of, read
from apps.evaluation.personalization.methods import METHODS, find_methods
from apps.evaluation.personalization.plan import Plan, Terms
from apps.evaluation.personalization.plot import draw
from apps.evaluation.personalization.progress import Screen, minutes
from apps.evaluation.personalization.references import FILE, known_elsewhere, model_hash
from apps.evaluation.personalization.report import build_report
from apps.evaluation.personalization.stage import Stage
from apps.evaluation.personalization.switches import refuse_what_is_missing
from apps.evaluation.personalization.tables import as_markdown, print_tables
from apps.evaluation.rules import RULES
from apps.evaluation.stack import Stack
from apps.evaluation.users import load_user
from kernel.errors import AttuneError

UNFINISHED = 3
_D = Terms()


class Command(BaseCommand):
    """Run what is missing of a benchmark; write state.jsonl, results.json,
    results.md and results.png into --out."""

    help = (
        "Scripted users talk through the public API to policies that learn in different ways, until three first replies "
        "in a row are right (--mode sessions), or complain once and wait (--mode once). Everything that is found out is "
        "a line in state.jsonl at once: killed at any point, the same command goes on. Uses the running platform, or "
        f"starts one for the time. Ends with status {UNFINISHED} where --minutes were over before the plan."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("--mode", choices=["sessions", "once"], default=_D.mode, help="Default: sessions.")
        add("--methods", nargs="+", default=["frozen", "combined"], help=f"Of {', '.join(METHODS)}.")
        add("--users", nargs="+", default=["one-short-sentence"], help=f"Of {', '.join(RULES)}.")
        add(
            "--seeds", nargs="+", type=int, default=[1], help="Order and wording of what is said (default 1)."
        )
        add("--sessions", type=int, default=_D.cap, help=f"The cap of a run (default {_D.cap}).")
        add(
            "--turns",
            type=int,
            default=_D.turns,
            help=f"Messages of a user in a session (default {_D.turns}).",
        )
        add(
            "--questions",
            type=int,
            default=_D.questions,
            help=f"For reporting, the first so many (default {_D.questions}, all of them).",
        )
        add(
            "--replies",
            type=int,
            default=_D.replies,
            help=f"To each question for reporting (default {_D.replies}).",
        )
        add(
            "--idle",
            type=float,
            default=_D.idle_s,
            help=f"Seconds between sessions, at least (default {_D.idle_s:g}).",
        )
        add(
            "--patience",
            type=float,
            default=_D.patience_s,
            help="Where the policy trains: seconds between sessions, at most, for a newer version to answer"
            f" (default {_D.patience_s:g}).",
        )
        add(
            "--idle-minutes",
            type=float,
            default=_D.idle_minutes,
            help=f"Minutes without talk at the end, for what trains (default {_D.idle_minutes:g}).",
        )
        add("--parallel", type=int, default=1, help="Runs side by side (default 1).")
        add("--minutes", type=float, help="Stop beginning things after so long; the next call goes on.")
        add("--out", type=Path, help="Folder of the results (default personalization in ATTUNE_HOME).")
        add("--plan", action="store_true", help="Only say what would be done, and how long it may take.")
        add("--json", action="store_true", help="Only the report on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        console = Console(stderr=options["json"])
        logging.getLogger("httpx").setLevel(logging.WARNING)
        out: Path = options["out"] or settings.ATTUNE_HOME / "personalization"
        try:
            plan = _plan(options)
            refuse_what_is_missing(plan.methods)
            stack = handed_stack()
            if options["plan"]:
                _show_plan(console, plan, out, as_json=options["json"])
            elif stack is None:
                status = run_beside(
                    "evaluate_personalization",
                    _arguments(options),
                    say=lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True),
                )
                sys.exit(status)
            else:
                sys.exit(_inside(stack, plan, out, options, console))
        except AttuneError as error:
            raise CommandError(error.message) from error
        except ExceptionGroup as group:
            raise CommandError(f"the benchmark broke off: {innermost(group)}") from group


def _plan(options: dict[str, Any]) -> Plan:
    bounds = {
        "sessions": (1, 1000),
        "turns": (2, 8),
        "questions": (1, _D.questions),
        "replies": (1, 20),
        "idle": (0, 3600),
        "patience": (0, 3600),
        "idle_minutes": (0, 1440),
        "parallel": (1, 8),
    }
    for name, (low, high) in bounds.items():
        if not low <= options[name] <= high:
            raise CommandError(f"--{name.replace('_', '-')} lies between {low} and {high}")
    if options["minutes"] is not None and not options["minutes"] > 0:
        raise CommandError("--minutes is more than 0")
    for name in ("methods", "users", "seeds"):
        if len(set(options[name])) != len(options[name]):
            raise CommandError(f"--{name} names one twice")
    if options["mode"] == "once" and options["parallel"] > 1:
        raise CommandError(
            "--mode once takes --parallel 1: what one run is asked would keep the others' minutes from being idle"
        )
    for user in options["users"]:
        load_user(user)
    return Plan(
        methods=tuple(find_methods(options["methods"])),
        users=tuple(options["users"]),
        seeds=tuple(options["seeds"]),
        terms=Terms(
            mode=options["mode"],
            cap=options["sessions"],
            turns=options["turns"],
            questions=options["questions"],
            replies=options["replies"],
            idle_s=options["idle"],
            patience_s=options["patience"],
            idle_minutes=options["idle_minutes"],
        ),
        base_model=settings.BASE_MODEL_NAME,
        model=model_hash(settings.MODEL_PATH),
    )


def _show_plan(console: Console, plan: Plan, out: Path, *, as_json: bool) -> None:
    lines = read(out / "state.jsonl")
    lines += known_elsewhere(_references(), plan, past_of(lines, plan))
    past = past_of(lines, plan)
    rest = estimate(plan, past)
    states = {str(key): _state(past[key]) for key in [*plan.references(), *plan.runs()]}
    if as_json:
        sys.stdout.write(json.dumps({"runs": states, **asdict(rest), "out": str(out)}) + "\n")
        return
    for key, state in states.items():
        console.print(f"{key}: {state}", markup=False, highlight=False)
    worst = "" if plan.terms.mode == "once" else f", {minutes(rest.at_most_s)} if no run converges"
    console.print(
        f"about {minutes(rest.seconds)}{worst}, one run at a time; about {rest.requests} requests; results in {out}",
        markup=False,
        soft_wrap=True,
    )


def _state(known: Past) -> str:
    if known.ended:
        return "done"
    return f"{len(known.sessions)} sessions so far" if known.tenant else "to do"


def _references() -> Path:
    home: Path = settings.ATTUNE_HOME
    return home / "personalization" / FILE


def _inside(stack: Stack, plan: Plan, out: Path, options: dict[str, Any], console: Console) -> int:
    await_engine(lambda line: console.print(line, markup=False))
    code = code_version(settings.BASE_DIR)
    about = circumstances(command=_arguments(options), code=code)
    seconds = float("inf") if options["minutes"] is None else options["minutes"] * 60
    with Journal(out / "state.jsonl", code=code, machine=about["machine"]) as journal:
        status = UNFINISHED
        try:
            with Screen(console, plan, journal.past(plan)) as screen:
                done = asyncio.run(
                    carry_out(
                        plan,
                        journal=journal,
                        platform=Stage(api_base=stack.api_base, tenant=stack.tenant, api_key=stack.api_key),
                        progress=screen,
                        parallel=options["parallel"],
                        seconds=seconds,
                        references=_references(),
                    )
                )
                status = 0 if done else UNFINISHED
        except KeyboardInterrupt:
            console.print("interrupted: the same command goes on", markup=False)
            status = INTERRUPTED
        finally:
            # also of half a benchmark, however it ended
            report = build_report(plan, journal.past(plan), about)
            (out / "results.json").write_text(
                json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            (out / "results.md").write_text(as_markdown(report), encoding="utf-8")
            draw(report, out / "results.png")
    if options["json"]:
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        print_tables(console, report)
        console.print(
            f"{out / 'results.md'}, results.json, results.png, state.jsonl", markup=False, soft_wrap=True
        )
    return status


def _arguments(options: dict[str, Any]) -> Sequence[str]:
    """Return the command line that says the same."""
    given: list[str] = []
    for name in (
        "mode",
        "methods",
        "users",
        "seeds",
        "sessions",
        "turns",
        "questions",
        "replies",
        "idle",
        "patience",
    ):
        value = options[name]
        given += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    given += ["--idle-minutes", str(options["idle_minutes"]), "--parallel", str(options["parallel"])]
    for name in ("minutes", "out"):
        if options[name] is not None:
            given += [f"--{name}", str(options[name])]
    return given + (["--json"] if options["json"] else [])
