"""A model directory as far as chatting needs it: tokenizer, template and configuration, no weights."""

import json
from pathlib import Path

import pytest

from apps.engines.chat import ChatFormat
from tests.tiny_model import VOCAB, build_tokenizer


def write_chat_model(directory: Path, template: str | None = None) -> Path:
    """Write what ChatFormat reads."""
    directory.mkdir(parents=True)
    build_tokenizer().save_pretrained(directory)
    if template is not None:
        (directory / "chat_template.jinja").write_text(template)
    config = {"vocab_size": VOCAB, "max_position_embeddings": 2048, "eos_token_id": 2}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(scope="session")
def chat(chat_model: Path) -> ChatFormat:
    return ChatFormat(chat_model)
