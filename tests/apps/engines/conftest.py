"""Two engines that behave, and adapters that are wanted on them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.engines import registry
from apps.engines.chat import chat_format
from apps.engines.models import DesiredAdapter
from embedded.engine import Engine
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.files import RANK, answers, probe
from tests.engines import Engines
from tests.fake_engine import FakeEngine
from tests.tiny_model import build_tiny_model

Want = Callable[..., DesiredAdapter]


class _TinyVocabulary:
    vocab_size = 64


@pytest.fixture
def engines(db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeEngine]]:
    """Two engines that are configured and not looked at yet."""
    monkeypatch.setattr("apps.engines.client.chat_format", _TinyVocabulary)
    settings.PROBE_TOLERANCE = 0.1
    settings.ENGINE_ADMIN_KEY = "admin"
    with ExitStack() as stack:
        running = [stack.enter_context(FakeEngine(admin_key="admin")) for _ in range(2)]
        for engine in running:
            answers(engine)
        settings.ENGINE_URLS = [engine.url for engine in running]
        yield running


@pytest.fixture
def tenant(db: None) -> Iterator[Tenant]:
    """A tenant in whose scope the test runs."""
    with system_scope("test"):
        made = Tenant.objects.create(slug=f"t-{uuid.uuid4().hex[:8]}", name="Test")
    with tenant_scope(made.pk):
        yield made


@pytest.fixture
def want(tenant: Tenant) -> Want:
    def ask(name: str, **more: Any) -> DesiredAdapter:
        facts = {"path": f"/store/{name}", "sha256": "a" * 64, "rank": 4, "probe": probe()} | more
        return registry.want(tenant_id=tenant.pk, served_name=name, **facts)

    return ask


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("engine-model") / "tiny")


@pytest.fixture
def engine(engine_process: Engines, model: Path, settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    running = engine_process(model)
    settings.MODEL_PATH = model
    settings.ENGINE_URLS = [running.url]
    settings.ENGINE_API_KEY, settings.ENGINE_ADMIN_KEY = running.api_key, running.admin_key
    settings.ADAPTER_STORE = tmp_path / "adapters"
    settings.LORA_RANK = RANK
    settings.PROBE_TOLERANCE = 0.001  # float32 on both sides
    chat_format.cache_clear()
    yield running
    chat_format.cache_clear()
