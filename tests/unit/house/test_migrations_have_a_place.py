"""`makemigrations --check` is silent about an app whose migration package is
missing: so it is checked here."""

import importlib
from pathlib import Path

from django.apps import apps
from django.conf import settings

ROOT = Path(__file__).resolve().parents[3]


def local_labels_with_models() -> set[str]:
    return {
        config.label
        for config in apps.get_app_configs()
        if config.name == "kernel" or config.name.startswith("apps.")
        if any(True for _ in config.get_models())
    }


def test_the_map_names_exactly_the_local_apps_with_models() -> None:
    labels = local_labels_with_models()
    assert len(labels) >= 8
    expected = {label: f"migrations.{label}" for label in labels}
    assert expected == settings.MIGRATION_MODULES


def test_each_target_is_a_package_with_a_first_migration() -> None:
    for label, module in settings.MIGRATION_MODULES.items():
        package = importlib.import_module(module)
        assert package.__file__ is not None, module  # a folder without __init__.py imports as a namespace
        assert Path(package.__file__) == ROOT / "migrations" / label / "__init__.py"
        assert (ROOT / "migrations" / label / "0001_initial.py").is_file()
