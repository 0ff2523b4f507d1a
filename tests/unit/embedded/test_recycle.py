"""A stuck embedded engine is ended, and with it what it started; the supervisor starts it again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from embedded import recycle
from embedded.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("ATTUNE_HOME", str(tmp_path))
    made = Home.from_environment()
    made.processes.parent.mkdir(parents=True, exist_ok=True)
    return made


def test_the_engine_and_its_children_are_ended(home: Home) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", deaf], start_new_session=True, stdout=subprocess.PIPE
    ) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        home.processes.write_text(json.dumps({"gateway": 1, "engine": engine.pid}))

        assert recycle.main() == 0
        assert engine.wait(10) == -9


def test_without_an_engine_of_its_own_there_is_nothing_to_end(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recycle.main() == 1
    home.processes.write_text(json.dumps({"gateway": 1}))
    assert recycle.main() == 1
    assert "no embedded engine" in capsys.readouterr().err
