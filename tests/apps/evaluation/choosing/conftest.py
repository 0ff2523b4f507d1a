"""A model that choosing questions are put into tokens with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.engines.chat import chat_format
from tests.chat_model import build_chat_model


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(autouse=True)
def _served_model(chat_model: Path, settings: Settings) -> Iterator[None]:
    settings.MODEL_PATH = chat_model
    chat_format.cache_clear()
    yield
    chat_format.cache_clear()
