"""New versions go live every moment on two engines while requests keep coming:
none fails, none waits for it."""

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.conf import settings as configured
from django.db import connection
from pytest_django import Settings

from apps.adapters import publishing, services
from apps.adapters.models import AdapterVersion
from apps.engines.services import reconcile
from apps.keys.services import set_limit
from kernel.tenancy import tenant_scope
from tests.api.gateway_process import GatewayProcess
from tests.apps.adapters.files import RANK, answers, directory_of, write_adapter, write_base
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

MANY = 2_000_000_000


class _TinyVocabulary:
    vocab_size = 64


@pytest.fixture
def fleet(
    ledger: None, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[FakeEngine]]:
    """Two engines that the reconciler knows, and an adapter store."""
    base = write_base(tmp_path / "model")
    settings.MODEL_PATH, settings.ADAPTER_STORE, settings.LORA_RANK = base, tmp_path / "adapters", RANK
    settings.PROBE_TOLERANCE = 0.1
    monkeypatch.setattr("apps.engines.client.chat_format", _TinyVocabulary)
    keys = {"api_key": configured.ENGINE_API_KEY, "admin_key": configured.ENGINE_ADMIN_KEY}
    with FakeEngine(**keys) as one, FakeEngine(**keys) as two:
        for engine in (one, two):
            answers(engine)
            engine.load_s = 0.1
        settings.ENGINE_URLS = [one.url, two.url]
        reconcile()
        yield [one, two]


class Swapper:
    """Publishes one version after the other until told to stop."""

    def __init__(self, somebody: Somebody, base: Path, *, every_s: float) -> None:
        self.outcomes: Counter[str] = Counter()
        self._somebody = somebody
        self._base = base
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Swapper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        policy, parent = self._somebody.policy, None
        with tenant_scope(policy.tenant_id):
            while not self._stop.wait(self._every_s):
                parent = self._next(parent)
                self.outcomes[publishing.publish(parent.pk).outcome] += 1
        connection.close()

    def _next(self, parent: AdapterVersion | None) -> AdapterVersion:
        number = parent.number + 1 if parent else 1
        directory = directory_of(configured.ADAPTER_STORE, self._somebody.policy, number)
        sha256 = write_adapter(directory, self._base, seed=number)
        return services.create_version(
            policy=self._somebody.policy,
            parent=parent,
            run_id=uuid.uuid4(),
            artefact_dir=directory,
            sha256=sha256,
            rank=RANK,
            alpha=8,
            metrics={},
        )


async def send(url: str, somebody: Somebody, count: int, *, parallel: int) -> list[tuple[int, int, str]]:
    """Send requests; returns of each its status, the version it says it is of, and its text or error."""
    answers: list[tuple[int, int, str]] = []
    work = iter(range(count))

    async def lane(client: httpx.AsyncClient) -> None:
        for number in work:
            body = {"model": "default", "messages": [{"role": "user", "content": f"hi {number}"}]}
            got = await client.post("/v1/chat/completions", json=body, headers=somebody.headers)
            answers.append((got.status_code, int(got.headers.get("x-adapter-version", -1)), got.text))

    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        await asyncio.gather(*(lane(client) for _ in range(parallel)))
    return answers


def swapped_under_load(
    gateway: GatewayProcess, somebody: Somebody, fleet: list[FakeEngine], *, requests: int, every_s: float
) -> tuple[list[tuple[int, int, str]], Counter[str]]:
    for key_id in (somebody.key.id, None):
        set_limit(
            tenant_id=somebody.tenant.id,
            key_id=key_id,
            actor="test",
            requests_per_minute=MANY,
            tokens_per_minute=MANY,
            concurrent=1000,
        )
    base = Path(configured.MODEL_PATH)
    with Swapper(somebody, base, every_s=every_s) as swapper:
        got = asyncio.run(send(gateway.url, somebody, requests, parallel=8))
    # nothing was ever asked for under a name that its engine did not have
    for engine in fleet:
        assert len(engine.adapters) <= engine.max_loaded_loras
    return got, swapper.outcomes


def test_no_request_fails_while_versions_go_live(
    gateway: GatewayProcess, somebody: Somebody, fleet: list[FakeEngine]
) -> None:
    got, outcomes = swapped_under_load(gateway, somebody, fleet, requests=400, every_s=0.1)

    assert [text for status, _, text in got if status != 200] == []
    assert set(outcomes) == {"live"}
    assert outcomes["live"] >= 3
    versions = {version for _, version, _ in got}
    assert len(versions) >= 3


@pytest.mark.long
def test_none_of_ten_thousand_requests_fails_while_a_version_goes_live_every_second(
    gateway: GatewayProcess, somebody: Somebody, fleet: list[FakeEngine]
) -> None:
    got, outcomes = swapped_under_load(gateway, somebody, fleet, requests=10_000, every_s=1.0)

    assert len(got) == 10_000
    assert [text for status, _, text in got if status != 200] == []
    assert set(outcomes) == {"live"}
    assert outcomes["live"] > 8  # more than an engine keeps: the oldest made room meanwhile
