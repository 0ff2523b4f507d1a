"""A tenant with a policy whose prompts are read by a byte tokeniser, and an adapter store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.engines.chat import chat_format
from tests.chat_model import build_chat_model
from tests.tenants import Somebody, add_somebody


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(autouse=True)
def _home(chat_model: Path, tmp_path: Path, settings: Settings) -> Iterator[None]:
    settings.MODEL_PATH = chat_model
    settings.ADAPTER_STORE = tmp_path / "adapters"
    chat_format.cache_clear()
    yield
    chat_format.cache_clear()


@pytest.fixture
def somebody(db: None) -> Somebody:
    return add_somebody()
