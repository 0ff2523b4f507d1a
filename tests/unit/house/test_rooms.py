"""The rooms stand as the design says: nothing leaves a room out of the import rules."""

import tomllib
from pathlib import Path

from django.apps import apps

ROOT = Path(__file__).resolve().parents[3]


def test_every_room_is_in_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    ordered = {name.strip() for layer in layers for name in layer.split("|")}
    folders = {f"apps.{path.parent.name}" for path in (ROOT / "apps").glob("*/__init__.py")}
    assert folders | {"kernel", "workers", "config", "embedded"} <= ordered


def test_every_room_is_installed() -> None:
    folders = {f"apps.{path.parent.name}" for path in (ROOT / "apps").glob("*/__init__.py")}
    assert folders <= {config.name for config in apps.get_app_configs()}
