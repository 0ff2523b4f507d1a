"""A sglang-router is told of engines when they are looked at, under their own addresses."""

from collections.abc import Iterator

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from apps.engines.models import Engine, EngineState
from apps.engines.services import reconcile
from tests.fake_engine import FakeEngine
from tests.fake_router import FakeRouter

pytestmark = pytest.mark.django_db


@pytest.fixture
def router(settings: Settings) -> Iterator[FakeRouter]:
    with FakeRouter(api_key=configured.ENGINE_API_KEY) as running:
        settings.ENGINE_ROUTER_URL = running.url
        yield running


@pytest.fixture
def engines(settings: Settings) -> Iterator[list[FakeEngine]]:
    keys = {"api_key": configured.ENGINE_API_KEY, "admin_key": configured.ENGINE_ADMIN_KEY}
    with FakeEngine(**keys) as one, FakeEngine(**keys) as two:
        settings.ENGINE_URLS = [one.url, two.url]
        yield [one, two]


def known(router: FakeRouter) -> dict[str, str]:
    return {worker["url"]: worker["model_id"] for worker in router.workers.values()}


def test_the_router_is_told_of_each_engine_once(router: FakeRouter, engines: list[FakeEngine]) -> None:
    urls = [engine.url for engine in engines]
    for _ in range(2):
        assert [one.state for one in reconcile()] == [EngineState.READY] * 2

    assert known(router) == {url: url for url in urls}
    assert sorted(router.registered) == sorted(urls)


def test_a_router_that_lost_its_memory_is_told_again(router: FakeRouter, engines: list[FakeEngine]) -> None:
    reconcile()
    router.workers.clear()
    reconcile()

    assert set(known(router)) == {engine.url for engine in engines}


def test_an_engine_that_is_away_is_told_of_when_it_is_there(
    router: FakeRouter, engines: list[FakeEngine]
) -> None:
    engines[0].ready = False
    reconcile()
    assert set(known(router)) == {engines[1].url}
    engines[0].ready = True
    reconcile()
    assert set(known(router)) == {engine.url for engine in engines}


def test_what_the_router_was_started_with_gets_its_own_name_and_what_is_not_ours_stays(
    router: FakeRouter, engines: list[FakeEngine]
) -> None:
    router.add(engines[0].url, "base")
    router.add("http://10.0.0.1:1", "base")
    router.add("http://10.0.0.2:2", "http://10.0.0.2:2")  # an engine that has no row any more
    reconcile()

    own = {engine.url: engine.url for engine in engines}
    assert known(router) == own | {"http://10.0.0.1:1": "base"}


def test_a_router_that_is_away_keeps_no_engine_from_being_looked_at(
    settings: Settings, engines: list[FakeEngine]
) -> None:
    settings.ENGINE_ROUTER_URL = "http://127.0.0.1:1"
    reconcile()

    assert set(Engine.objects.values_list("state", flat=True)) == {EngineState.READY}
