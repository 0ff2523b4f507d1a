"""`manage.py demo` by itself: it starts the platform, talks, reports,
says what it missed, and stops everything."""

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


def _demo(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "REDIS_URL", "ENGINE_URLS", "ADAPTER_STORE", "SECRET_KEY"}
    }
    return subprocess.run(
        [sys.executable, "manage.py", "demo", *arguments, "--json"],
        cwd=REPOSITORY,
        env={
            **inherited,
            "ATTUNE_HOME": str(home),
            "ATTUNE_GATEWAY_PORT": str(free_port()),
            "ATTUNE_WEB_PORT": str(free_port()),
            "ATTUNE_DEVICE": "cpu",
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            # random weights answer nonsense of full length: nothing can be learned here, everything else can
            "MODEL_PATH": str(build_tiny_model(home.parent / "model")),
            "ENGINE_DTYPE": "float32",
            "TRAINER_DEVICE": "cpu",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def _nothing_is_left(home: Path) -> None:
    processes = json.loads((home / "run" / "processes.json").read_text())
    assert [name for name, pid in processes.items() if Path(f"/proc/{pid}").exists()] == []


def test_it_tells_it_once_and_says_where_the_time_was_too_short(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ended = _demo(home, "--minutes", "2", "--seed", "5")
    assert ended.returncode == 0, ended.stderr[-4000:]
    report = json.loads(ended.stdout)
    assert report == json.loads((home / "demo-report.json").read_text())
    assert [(row["what"], row["told"]) for row in report["replies"][:3]] == [
        ("before", "nothing"),
        ("the reply to the complaint", "the complaint"),
        ("the next question, in a new session", "what is remembered"),
    ]
    assert report["replies"][-1]["what"].endswith(", at the end")
    assert (report["complaints"], report["failed_requests"], report["before"]) == (1, 0, None)
    assert report["bar"] == {"no failed request": True, "remembered within 60 s": True}
    assert report["why_stopped"]
    _nothing_is_left(home)


def test_it_starts_what_it_needs_and_says_what_it_missed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ended = _demo(home, "--talk", "--minutes", "3", "--seed", "5")
    assert ended.returncode == 1, ended.stderr[-4000:]
    report = json.loads(ended.stdout)
    assert report == json.loads((home / "demo-report.json").read_text())
    assert (report["before"], report["of"], report["failed_requests"]) == (0, 60, 0)
    assert report["bar"]["after at least 30"] is False
    assert report["seed"] == 5
    assert report["samples"]["consumed"] >= 8
    assert [row["number"] for row in report["versions"]] == list(range(1, len(report["versions"]) + 1))
    assert len(report["versions"]) >= 1
    assert (home / "demo-report.png").stat().st_size > 10_000
    assert "Ready" in (home / "log" / "demo-up.log").read_text()
    _nothing_is_left(home)
