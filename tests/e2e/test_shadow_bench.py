"""The benchmark of shadow rollouts runs on the real engine and gateway, and writes what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.home import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("engine")]


def test_it_measures_both_ways_and_writes_its_json(tmp_path: Path) -> None:
    inherited = {
        name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
    }
    ended = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "tests.load.shadow",
                "--model",
                "tiny",
                "--rounds",
                "1",
                "--seconds",
                "20",
            ),
            *("--pause", "8", "--people", "2", "--requests", "2"),
        ],
        cwd=REPOSITORY,
        env={**inherited, "ATTUNE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    result = json.loads((tmp_path / "bench" / "shadow.json").read_text())
    assert json.loads(ended.stdout[ended.stdout.index("{") :]) == result
    assert result["ratio"] == result["with"]["first_token_p99_s"] / result["without"]["first_token_p99_s"]
    assert [result[way]["requests"] % 4 for way in ("with", "without")] == [0, 0]  # whole bursts
    assert result["shadow_tokens"] > 0
    assert result["shadow"]["replies"] > result["shadow"]["given_up"]
    assert result["sizes"]["model"] == "tiny"
    assert result["seed"] == 20261130
    assert "sglang" in result["versions"]
