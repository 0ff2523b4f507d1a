"""`platform/` is a folder of sources; the module of that name is the standard library's, from everywhere."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STANDARD = Path(os.__file__).parent / "platform.py"
SHOW = "import platform; print(platform.__file__, platform.system())"


def test_there_is_no_init_file() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists()


def test_under_pytest() -> None:
    assert Path(platform.__file__) == STANDARD


@pytest.mark.parametrize(
    "command",
    [
        ["-c", SHOW],
        ["manage.py", "shell", "--no-imports", "-c", SHOW],
        ["-c", f"import config.asgi_web; {SHOW}"],
        ["-c", f"import config.asgi_gateway; {SHOW}"],
        ["-c", f"import workers, trainer, kernel, embedded; {SHOW}"],
    ],
    ids=["python", "manage.py", "web", "gateway", "rooms"],
)
def test_from_each_entry_point(command: list[str]) -> None:
    env = os.environ | {"SECRET_KEY": "tests-only", "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    env.pop("PYTHONPATH", None)
    told = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    file, system = told.stdout.split()[-2:]
    assert Path(file) == STANDARD
    assert system == "Linux"


@pytest.mark.parametrize("module", ["config", "kernel", "embedded"])
def test_modules_run_by_name_find_the_source_root(module: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = f"import {module}, platform; print({module}.__file__, platform.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd="/", env=env, capture_output=True, text=True, check=True
    )
    where, standard = told.stdout.split()
    assert Path(where).parent == ROOT / "platform" / module
    assert Path(standard) == STANDARD
