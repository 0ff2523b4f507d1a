"""Two engines that behave, and adapters that are wanted on them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.engines import registry
from apps.engines.models import DesiredAdapter
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.files import answers, probe
from tests.fake_engine import FakeEngine

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
