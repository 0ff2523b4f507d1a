"""A tenant with a policy, an adapter store, and engines that behave."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.adapters import services
from apps.adapters.models import AdapterVersion, Policy
from apps.engines.services import reconcile
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.files import RANK, answers, directory_of, write_adapter, write_base
from tests.fake_engine import FakeEngine
from tests.tiny_model import build_tokenizer

MakeVersion = Callable[..., AdapterVersion]


@pytest.fixture(scope="session")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_base(tmp_path_factory.mktemp("base") / "model")
    build_tokenizer().save_pretrained(directory)
    return directory


@pytest.fixture
def store(settings: Settings, tmp_path: Path, base_model: Path) -> Path:
    settings.MODEL_PATH = base_model
    settings.ADAPTER_STORE = tmp_path / "adapters"
    settings.LORA_RANK = RANK
    settings.PROBE_TOLERANCE = 0.1
    settings.ADAPTER_STORE.mkdir()
    return tmp_path / "adapters"


@pytest.fixture
def engines(store: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeEngine]]:
    """Two engines, registered by the test with `reconcile()`."""
    monkeypatch.setattr("apps.engines.client.chat_format", _TinyVocabulary)
    with ExitStack() as stack:
        running = [stack.enter_context(FakeEngine(admin_key="admin")) for _ in range(2)]
        for engine in running:
            answers(engine)
        settings.ENGINE_URLS = [engine.url for engine in running]
        settings.ENGINE_ADMIN_KEY = "admin"
        yield running


class _TinyVocabulary:
    vocab_size = 64


@pytest.fixture
def tenant(db: None) -> Tenant:
    with system_scope("test"):
        return Tenant.objects.create(slug=f"t-{uuid.uuid4().hex[:8]}", name="Test")


@pytest.fixture
def policy(tenant: Tenant) -> Iterator[Policy]:
    """A policy; the test runs in its tenant's scope."""
    with tenant_scope(tenant.pk):
        yield services.create_policy(tenant=tenant, name="default")


@pytest.fixture
def make_version(store: Path, base_model: Path, policy: Policy) -> MakeVersion:
    def make(parent: AdapterVersion | None = None, **files: Any) -> AdapterVersion:
        directory = directory_of(store, policy, parent.number + 1 if parent else 1)
        sha256 = write_adapter(directory, base_model, **files)
        return services.create_version(
            policy=policy,
            parent=parent,
            run_id=uuid.uuid4(),
            artefact_dir=directory,
            sha256=sha256,
            rank=RANK,
            alpha=8,
            metrics={"loss": 1.0},
        )

    return make


@pytest.fixture
def ready(engines: list[FakeEngine], tenant: Tenant) -> list[FakeEngine]:
    """The engines, known and ready."""
    reconcile()
    return engines
