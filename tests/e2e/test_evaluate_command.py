"""`manage.py evaluate_personalization` by itself:
it starts the platform, talks, trains, is out of time, and goes on later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.home import REPOSITORY, free_port
from tests.tiny_model import build_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("engine")]

UNFINISHED = 3


def _run(home: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "REDIS_URL", "ENGINE_URLS", "ADAPTER_STORE", "SECRET_KEY"}
    }
    environment = {
        **inherited,
        "ATTUNE_HOME": str(home),
        "ATTUNE_GATEWAY_PORT": str(free_port()),
        "ATTUNE_WEB_PORT": str(free_port()),
        "ATTUNE_DEVICE": "cpu",
        "DJANGO_SETTINGS_MODULE": "config.settings.local",
        # random weights answer nonsense of full length: no session converges here, everything else happens
        "MODEL_PATH": str(build_tiny_model(home.parent / "model")),
        "ENGINE_DTYPE": "float32",
        "TRAINER_DEVICE": "cpu",
        "TRAINING_BATCH": "2",
    }
    return subprocess.run(
        [sys.executable, "manage.py", "evaluate_personalization", *arguments, "--out", str(out), "--json"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_told_once_waits_rests_and_says_what_the_minutes_went_to(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "results"
    ended = _run(
        home,
        out,
        *("--mode", "once", "--methods", "joined", "--idle-minutes", "0.5"),
        *("--questions", "2", "--replies", "1"),
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    report = json.loads(ended.stdout)
    (run,) = report["runs"]
    assert (run["complaints"], run["first_request"]["of"], run["held_out"]["of"]) == (1, 2, 2)
    idled = run["idled"]
    assert (idled["minutes"], idled["version"]) == (0.5, run["held_out"]["version"])
    assert idled["preferences"] == run["preferences"] != {}
    assert idled["account"]["lesson"]["state"] in {"teaching", "plateau", "held"}
    assert report["reply_tokens"] == {"one-short-sentence": 72}
    assert [len(report["model"]), report["missing"]] == [16, []]
    assert "What the idle minutes went to" in (out / "results.md").read_text()
    kept = (home / "personalization" / "references.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in kept] == ["base", "hinted", "ended"]


def test_a_benchmark_is_interrupted_goes_on_and_reports(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "results"

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return _run(
            home,
            out,
            *("--methods", "frozen", "opd", "--sessions", "3", "--turns", "3", "--questions", "4"),
            *("--replies", "2", "--idle", "1", "--patience", "45", "--idle-minutes", "0.1", *more),
        )

    first = run("--minutes", "0.05")
    assert first.returncode == UNFINISHED, first.stderr[-4000:]
    missing = json.loads(first.stdout)["missing"]
    assert "opd/one-short-sentence/1" in missing
    begun = (out / "state.jsonl").read_text().splitlines()

    second = run()
    assert second.returncode == 0, second.stderr[-4000:]
    report = json.loads(second.stdout)
    assert (out / "state.jsonl").read_text().splitlines()[: len(begun)] == begun
    assert report == json.loads((out / "results.json").read_text())
    assert report["missing"] == []
    frozen, opd = report["runs"]
    assert (frozen["method"], frozen["sessions"], frozen["complaints"], frozen["version"]) == (
        "frozen",
        3,
        6,
        0,
    )
    assert (opd["method"], opd["sessions"], opd["complaints"], opd["converged"]) == ("opd", 3, 6, False)
    assert opd["version"] >= 1
    assert opd["versions_by_session"] == sorted(opd["versions_by_session"])
    assert (opd["held_out"]["of"], opd["held_out"]["version"]) == (8, opd["version"])
    assert opd["failed_requests"] == 0
    assert "| opd | 0/1 | 3.0 [3.0, 3.0] |" in (out / "results.md").read_text()
    assert (out / "results.png").stat().st_size > 10_000
    assert "Ready" in (home / "log" / "evaluate_personalization-up.log").read_text()
    processes = json.loads((home / "run" / "processes.json").read_text())
    assert [name for name, pid in processes.items() if Path(f"/proc/{pid}").exists()] == []
