"""A gateway process, an engine that behaves, somebody with a key, and an HTTP client."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg.sql import SQL, Identifier
from pytest_django import DjangoDbBlocker, Settings

from apps.engines.chat import chat_format
from apps.engines.models import Engine as EngineRow
from apps.engines.models import EngineState
from apps.engines.services import reconcile
from embedded.engine import Engine
from tests import services
from tests.api.gateway_process import GatewayProcess
from tests.api.real_fleet import Fleet
from tests.apps.adapters.files import RANK
from tests.chat_model import TEMPLATE, build_chat_model
from tests.engines import Engines
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody
from tests.tiny_model import build_tiny_model

Chat = Callable[..., httpx.Response]
_KEPT = {"django_migrations", "django_content_type", "auth_permission"}


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(scope="session")
def start_gateway(
    django_db_setup: None, chat_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., GatewayProcess]]:
    """Start gateways that live as long as the test run: `start_gateway(model=…, MAX_BODY_BYTES="5")`."""
    started: list[GatewayProcess] = []

    def start(model: Path = chat_model, **env: str) -> GatewayProcess:
        log = tmp_path_factory.mktemp("gateway") / "gateway.log"
        started.append(GatewayProcess(model=model, log=log, **env))
        return started[-1].start()

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture(scope="session")
def shared_gateway(start_gateway: Callable[..., GatewayProcess]) -> GatewayProcess:
    return start_gateway()


@pytest.fixture
def ledger(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow the database, with what is written there really committed; afterwards it is as empty as before.

    As `transactional_db`, whose way of cleaning up takes a second: half of these tests' time.
    """
    with django_db_blocker.unblock():
        yield
        tables = [name for name in connection.introspection.table_names() if name not in _KEPT]
        connection.close()
        # as replicas do: in any order, foreign keys unheeded
        with psycopg.connect(
            services.owner_url(), options="-c lock_timeout=10s -c session_replication_role=replica"
        ) as owner:
            for table in tables:
                owner.execute(SQL("DELETE FROM {}").format(Identifier(table)))


@pytest.fixture
def gateway(shared_gateway: GatewayProcess, ledger: None) -> GatewayProcess:
    return shared_gateway


@pytest.fixture
def engine(ledger: None) -> Iterator[FakeEngine]:
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        EngineRow.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


@pytest.fixture
def somebody(ledger: None) -> Somebody:
    return add_somebody()


@pytest.fixture
def http(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.url, trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
def chat(http: httpx.Client, somebody: Somebody, engine: FakeEngine) -> Chat:
    """Send a chat: `chat("hi", stream=True, headers={...})`; messages may be a list too."""

    def send(
        messages: str | list[dict[str, Any]] = "hi",
        *,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        body = {"model": "default", "messages": said, **fields}
        return http.post("/v1/chat/completions", json=body, headers={**somebody.headers, **(headers or {})})

    return send


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("fleet")
    made = [build_tiny_model(folder / "one"), folder / "two"]
    (made[0] / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    shutil.copytree(*made)
    return made


@pytest.fixture
def engines(engine_process: Engines, models: list[Path]) -> list[Engine]:
    return [engine_process(model) for model in models]


@pytest.fixture
def fleet(
    ledger: None,
    start_gateway: Callable[..., GatewayProcess],
    engines: list[Engine],
    settings: Settings,
    tmp_path: Path,
) -> Iterator[Fleet]:
    settings.MODEL_PATH, settings.ADAPTER_STORE = engines[0].model, tmp_path / "adapters"
    settings.ENGINE_URLS = [engine.url for engine in engines]
    settings.ENGINE_API_KEY, settings.ENGINE_ADMIN_KEY = engines[0].api_key, engines[0].admin_key
    settings.LORA_RANK, settings.PROBE_TOLERANCE = RANK, 0.001
    chat_format.cache_clear()
    reconcile()
    assert set(EngineRow.objects.values_list("state", flat=True)) == {EngineState.READY}
    yield Fleet(engines, engines[0].model, tmp_path / "adapters", start_gateway)
    chat_format.cache_clear()
