"""`python -m embedded.up` where it cannot start:
one line that says why and what to do, and nothing started."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from embedded import plan, preflight
from embedded.engine import has_nvidia_gpu
from embedded.errors import CannotStart
from embedded.home import REPOSITORY, Home, free_port


def _up(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embedded.up"],
        env={**os.environ, "ATTUNE_HOME": str(home), **variables},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_port_in_use_is_named_with_the_variable_that_moves_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = _up(tmp_path / "home", ATTUNE_GATEWAY_PORT=str(port), ATTUNE_WEB_PORT=str(free_port()))
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == (
        f"port {port} cannot be used (Address already in use): stop what listens on it, "
        "or set ATTUNE_GATEWAY_PORT to another port\n"
    )
    assert not (tmp_path / "home" / "postgres").exists()


def test_a_second_start_on_the_same_home_names_the_first(tmp_path: Path) -> None:
    home = Home(tmp_path / "my home")
    home.prepare()
    lock = home.hold()
    ended = _up(home.path, ATTUNE_GATEWAY_PORT=str(free_port()), ATTUNE_WEB_PORT=str(free_port()))
    os.close(lock)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"another `make up` (process {os.getpid()}) runs on {home.path}: stop it first, "
        "or set ATTUNE_HOME to another directory\n"
    )


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = _up(tmp_path / "file" / "home")
    assert ended.returncode == 1
    assert ended.stderr == (
        f"{tmp_path}/file/home cannot be used: Not a directory; set ATTUNE_HOME to another place\n"
    )


def test_a_full_disk_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "ROOM_TO_RUN", 10**18)
    with pytest.raises(
        CannotStart, match=r"GB are free under .*: make room, or set ATTUNE_HOME to another disk"
    ):
        preflight.check_room(tmp_path, models_there=True)


@pytest.mark.parametrize(
    ("gpu", "said"),
    [(True, "a C compiler is missing, .*install gcc"), (False, "lscpu is missing, .*install util-linux")],
)
def test_a_missing_program_is_named_with_its_package(
    gpu: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight.check_programs(gpu=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match=said):
        preflight.check_programs(gpu=gpu)


@pytest.mark.parametrize("value", ["0", "65536", "many"])
def test_a_port_that_is_none_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTUNE_WEB_PORT", value)
    with pytest.raises(CannotStart, match=f"ATTUNE_WEB_PORT={value} is not a port"):
        plan.ports()


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = home.secrets()
    assert home.secrets() == first
    assert len(set(first.values())) == 6
    assert all(re.fullmatch("[0-9a-f]{48}", value) for value in first.values())  # never read as an option
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_each_embedded_part_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "ENGINE_URLS", "MODEL_PATH"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path)
    home.prepare()
    everything = {service.name for service in plan.make(home).services}
    assert {"postgres", "valkey", "model", "engine"} < everything

    monkeypatch.setenv("DATABASE_URL", "postgresql://somebody@elsewhere/attune")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere/0")
    monkeypatch.setenv("ENGINE_URLS", "http://elsewhere:30000")
    monkeypatch.setenv("MODEL_PATH", str(tmp_path / "mine"))
    chosen = plan.make(home)
    assert {service.name for service in chosen.services} == everything - {
        "postgres",
        "valkey",
        "model",
        "engine",
    }
    assert all(not {"postgres", "valkey", "model"} & set(service.after) for service in chosen.services)
    kept = json.loads(home.environment.read_text())
    assert kept["DATABASE_URL"] == "postgresql://somebody@elsewhere/attune"
    assert kept["ENGINE_URLS"] == "http://elsewhere:30000"
    assert kept["MODEL_PATH"] == kept["TRAINER_MODEL_PATH"] == str(tmp_path / "mine")
    assert stat.S_IMODE(home.environment.stat().st_mode) == 0o600


def test_the_locks_name_each_package_once_and_agree_on_the_tools() -> None:
    """dev.txt goes on top of either lock with nothing resolved:
    a package in two files would be installed twice."""
    pins = {
        name: {
            line.split("==")[0].lower().replace("_", "-"): line
            for line in (REPOSITORY / "requirements" / f"{name}.txt").read_text().splitlines()
            if "==" in line and not line.startswith("#")
        }
        for name in ("cpu", "gpu", "dev")
    }
    assert not pins["dev"].keys() & pins["cpu"].keys()
    assert not pins["dev"].keys() & pins["gpu"].keys()
    assert pins["cpu"].keys() - pins["gpu"].keys() == set()
    assert pins["cpu"]["sglang"] == pins["gpu"]["sglang"] == "sglang==0.5.23"
    for name in ("cpu", "gpu"):
        assert not [pin for pin in pins[name] if "cpu-engine" in pin or "sgl-kernel" in pin]


def test_what_this_environment_holds_is_what_the_lock_says() -> None:
    from importlib.metadata import version

    lock = (REPOSITORY / "requirements" / ("gpu.txt" if has_nvidia_gpu() else "cpu.txt")).read_text()
    pinned = dict(line.split("==") for line in lock.splitlines() if "==" in line and not line.startswith("#"))
    assert {name: version(name).split("+")[0] for name in pinned} == pinned
