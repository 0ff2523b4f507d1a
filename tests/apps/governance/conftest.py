"""A tenant whose rows are really committed: snapshots and jobs read them on connections of their own."""

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.apps.console.rows import Rows, fill


@pytest.fixture
def acme(transactional_db: None, settings: Settings, tmp_path: Path) -> Rows:
    del transactional_db
    settings.EXPORT_STORE = tmp_path / "exports"
    return fill("acme")
