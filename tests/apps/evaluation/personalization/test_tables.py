"""What a reader gets: the page, the terminal's tables, the plot, the lines while it runs."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from apps.evaluation.personalization.circumstances import circumstances, code_version
from apps.evaluation.personalization.course import carry_out
from apps.evaluation.personalization.journal import Journal
from apps.evaluation.personalization.plan import Plan
from apps.evaluation.personalization.plot import draw
from apps.evaluation.personalization.progress import Screen
from apps.evaluation.personalization.report import build_report
from apps.evaluation.personalization.tables import as_markdown, print_tables
from tests.apps.evaluation.personalization.fake_world import QUICK, FakeWorld, plan_of

ABOUT = {**circumstances(command=["--methods", "opd"], code="abc"), "machine": "2 cores", "code": "abc"}


async def _made(plan: Plan, path: Path) -> tuple[dict[str, Any], str]:
    """Carry a plan out; return its report and what was printed meanwhile."""
    printed = io.StringIO()
    async with FakeWorld() as world:
        with Journal(path, code="abc", machine="2 cores") as journal:
            with Screen(Console(file=printed, width=200), plan, journal.past(plan)) as screen:
                assert await carry_out(plan, journal=journal, platform=world, progress=screen)
            return build_report(plan, journal.past(plan), ABOUT), printed.getvalue()


async def test_a_page_says_how_it_came_about_and_what_came_out(tmp_path: Path) -> None:
    report, printed = await _made(plan_of("frozen", "opd"), tmp_path / "state.jsonl")
    page = as_markdown(report)
    assert "`manage.py evaluate_personalization --methods opd`" in page
    assert "Base model fake; users one-short-sentence; seeds 1; 3 replies to each" in page
    assert "| frozen | 0/1 | 9.0 [9.0, 9.0] | 9 | 63 | 0/60 [0.00, 0.00] | - |" in page
    assert "| opd | 1/1 | 5.0 [5.0, 5.0] | 5 | 14 | 60/60 [1.00, 1.00] | - |" in page
    assert (
        "| one-short-sentence | 0/60 [0.00, 0.00] | 0/60 [0.00, 0.00] | 60/60 [1.00, 1.00] | 180/180 [1.00, 1.00] |"
        in page
    )
    assert "| opd | 1.00 (1.00) | 1.00 (1.00) | 1.00 (1.00) |" in page
    assert "Not done yet" not in page
    lines = printed.splitlines()
    assert re.search(
        r"opd/one-short-sentence/1  session 1: several sentences; 7 complaints, version 0, ", printed
    )
    assert "reference/one-short-sentence/0  hinted: 180/180" in printed
    assert "3 of 3 runs; about 0 min left, 0 min if none converges" in lines[-1]
    draw(report, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    shown = io.StringIO()
    print_tables(Console(file=shown, width=200), report)
    assert "Sessions until 3 first replies in a row pass (cap 9)" in shown.getvalue()


async def test_told_once_has_tables_of_its_own(tmp_path: Path) -> None:
    plan = plan_of("joined", terms=replace(QUICK, mode="once"))
    report, _ = await _made(plan, tmp_path / "state.jsonl")
    page = as_markdown(report)
    assert "## One complaint, then 0 idle minutes" in page
    assert "| joined | 1 | 60/60 [1.00, 1.00] | 0/60 [0.00, 0.00] | 1/1 |" in page
    assert "| no | joined, told once: un-hinted held-out replies pass at least 36 of 60" in page
    draw(report, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5_000


def test_half_a_benchmark_is_a_page_too(tmp_path: Path) -> None:
    plan = plan_of("frozen", "joined", "memory", "combined")
    with Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores") as journal:
        report = build_report(plan, journal.past(plan), ABOUT)
    page = as_markdown(report)
    assert f"**Not done yet:** {', '.join(map(str, [*plan.references(), *plan.runs()]))}." in page
    assert report["claims"] == []
    draw(report, tmp_path / "plot.png")


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_the_code_is_unknown_outside_a_repository(tmp_path: Path, folder: str) -> None:
    assert code_version(tmp_path / folder) == "unknown"
    assert ABOUT["versions"]["python"].startswith("3.")
    assert re.fullmatch(r"[0-9a-f]{16}", ABOUT["texts_and_rules"])


async def test_told_once_says_what_the_idle_minutes_went_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {
        "version": 1,
        "outcome": "better",
        "passes": 5,
        "of": 8,
        "closeness": -1.0,
        "k3": 0.1,
        "mean_tokens": 20.0,
    }

    async def account(_world: FakeWorld, _subject: object) -> dict[str, Any]:
        return {
            "shadow": {"replies": 16, "tokens": 700, "given_up": 0, "samples": {"live": 1, "shadow": 16}},
            "steps": {"by_state": {"succeeded": 2}, "waiting_s": 0.4, "working_s": 12.5, "choosing_s": None},
            "lesson": {
                "state": "teaching",
                "reason": "",
                "told_passes": 14,
                "untold_passes": 0,
                "course": [{**step, "version": 0, "passes": 0, "of": 16}, step],
            },
        }

    monkeypatch.setattr(FakeWorld, "account", account)
    report, printed = await _made(
        plan_of("joined", terms=replace(QUICK, mode="once")), tmp_path / "state.jsonl"
    )
    page = as_markdown(report)
    assert "## What the idle minutes went to" in page
    assert (
        "| joined/one-short-sentence/1 | 16 (700 tokens) | 2 | 0 | 0.4 / 12.5 / - | 0/16 5/8 | 0/60 |" in page
    )
    assert "joined/one-short-sentence/1  30 of 60 replies, about " in printed
    assert "if none converges" not in printed
