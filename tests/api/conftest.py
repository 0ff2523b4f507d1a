"""A gateway process, an engine that behaves, somebody with a key, and an HTTP client."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg.sql import SQL, Identifier
from pytest_django import DjangoDbBlocker

from apps.engines.models import Engine, EngineState
from tests import services
from tests.api.gateway_process import GatewayProcess
from tests.chat_model import build_chat_model
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody

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
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
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
