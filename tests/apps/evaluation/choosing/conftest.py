"""A model that choosing questions are put into tokens with, somebody with a wish,
and what versions measure."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.engines.chat import chat_format
from apps.evaluation.choosing import gate, yardstick
from apps.evaluation.choosing.figures import Measured
from apps.evaluation.choosing.measure import Teacher
from apps.memory import services
from kernel.tenancy import tenant_scope
from tests.apps.evaluation.choosing.teaching import WISH, measure_with
from tests.apps.evaluation.choosing.test_figures import BASE, STICK
from tests.chat_model import build_chat_model
from tests.tenants import Somebody, add_somebody


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(autouse=True)
def _served_model(chat_model: Path, settings: Settings) -> Iterator[None]:
    settings.MODEL_PATH = chat_model
    chat_format.cache_clear()
    yield
    chat_format.cache_clear()


@pytest.fixture
def somebody(db: None) -> Somebody:
    made = add_somebody()
    with tenant_scope(made.tenant.id):
        services.add_preference(
            policy_id=made.policy.id, user_id=made.user.id, end_user=None, text=WISH, actor="test"
        )
    return made


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Callable[[Measured], None]:
    """Say what the next version measures, and let the base be the yardstick."""
    found: list[Measured] = [BASE]
    monkeypatch.setattr(yardstick, "engine_for", lambda _: "http://engine")
    monkeypatch.setattr(gate, "pick_engine", lambda _: "http://engine")
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: Teacher(STICK, ((1, 2),)))
    measure_with(monkeypatch, lambda **_: found[-1])
    return found.append
