"""Several engines: who serves which policy, engines that come, go and are drained while the platform runs."""

import uuid
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from apps.engines import registry
from apps.engines.models import Engine, EngineOrder, EngineState
from apps.engines.replies import AdapterMissing, EngineGone, EngineUnavailable
from apps.engines.selectors import pick_engine, placement_of, ranked, steady_choice
from apps.engines.services import reconcile
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope
from tests.apps.engines.conftest import Want
from tests.fake_engine import FakeEngine

URLS = [f"http://engine-{i}" for i in range(4)]


def states() -> dict[str, str]:
    return dict(Engine.objects.values_list("url", "state"))


def test_all_versions_of_a_policy_prefer_the_same_engine() -> None:
    for policy in ("p00000001", "p0000beef", "p1"):
        assert len({ranked(URLS, f"{policy}-v{number}-{number:08x}")[0] for number in range(9)}) == 1


def test_policies_spread_over_the_engines_and_a_lost_one_moves_only_its_own() -> None:
    names = [f"p{uuid.uuid5(uuid.NAMESPACE_URL, str(i)).hex[:8]}-v1-aa" for i in range(400)]
    before = {name: steady_choice(URLS, name) for name in names}
    after = {name: steady_choice(URLS[1:], name) for name in names}

    assert all(70 < list(before.values()).count(url) < 130 for url in URLS)
    assert all(after[name] == url for name, url in before.items() if url != URLS[0])


def test_a_crowded_engine_hands_on_and_gets_its_policy_back() -> None:
    name = "p1-v1-aa"
    first, second = ranked(URLS, name)[:2]
    assert steady_choice(URLS, name, dict.fromkeys(URLS, 20).__getitem__) == first
    assert steady_choice(URLS, name, {**dict.fromkeys(URLS, 2), first: 20}.__getitem__) == second
    assert steady_choice(URLS, name, {**dict.fromkeys(URLS, 2), first: 6}.__getitem__) == first


def test_the_base_goes_where_the_fewest_requests_are() -> None:
    running = {URLS[0]: 3, URLS[1]: 1, URLS[2]: 1, URLS[3]: 2}
    assert {steady_choice(URLS, None, running.__getitem__) for _ in range(50)} == {URLS[1], URLS[2]}


def test_where_all_have_room_all_have_everything(engines: list[FakeEngine], want: Want) -> None:
    for i in range(4):
        want(f"p{i}-v1-aa")
    reconcile()
    assert placement_of("p0-v1-aa") == sorted(engine.url for engine in engines)


def test_with_more_policies_than_places_each_has_its_engine(engines: list[FakeEngine], want: Want) -> None:
    for engine in engines:
        engine.max_loaded_loras = 4
    names = [f"p{i}-v1-aa" for i in range(6)]
    reconcile()
    for name in names:
        want(name)
    reconcile()

    urls = sorted(engine.url for engine in engines)
    for name in names:
        assert placement_of(name) == [ranked(urls, name)[0]]
    for engine in engines:
        preferred = [name for name in names if ranked(urls, name)[0] == engine.url]
        assert len(engine.adapters) == 4
        assert set(preferred[:4]) <= set(engine.adapters) or len(preferred) > 4


def test_an_operator_adds_and_drains_engines_while_they_serve(
    engines: list[FakeEngine], settings: Settings
) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    reconcile()

    with system_scope("test"):
        registry.order(url=engines[1].url, order=EngineOrder.SERVE, actor="operator")
    assert pick_engine(None) == engines[0].url  # not looked at yet
    reconcile()
    assert set(states().values()) == {EngineState.READY}

    with system_scope("test"):
        registry.order(url=engines[0].url, order=EngineOrder.DRAIN, actor="operator")
    assert pick_engine(None) == engines[1].url  # at once
    reconcile()
    assert states() == {engines[0].url: EngineState.DRAINING, engines[1].url: EngineState.READY}

    with system_scope("test"):
        registry.order(url=engines[0].url, order=None, actor="operator")
        orders = AuditEntry.objects.filter(action="engine.order").order_by("created_at")
        assert [row.detail["order"] for row in orders] == ["serve", "drain", "as configured"]
    reconcile()
    assert set(states().values()) == {EngineState.READY}


def test_the_command_says_what_there_is(engines: list[FakeEngine], settings: Settings) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    reconcile()

    def say(*arguments: str) -> str:
        out = StringIO()
        call_command("engine", *arguments, stdout=out)
        return out.getvalue()

    assert f"{engines[0].url}  ready" in say("list")
    assert "drain" in say("drain", engines[0].url)
    assert f"{engines[0].url}  draining" in say("list")
    say("auto", engines[0].url)
    say("add", engines[1].url)
    reconcile()
    assert say("list").count("ready") == 2
    with pytest.raises(CommandError, match="there is no engine"):
        say("drain", "http://nowhere:1")
    with pytest.raises(CommandError, match="http"):
        say("add", "nowhere")


def test_a_request_that_finds_an_engine_gone_tells_everybody(engines: list[FakeEngine]) -> None:
    reconcile()
    for _ in range(2):
        registry.report(url=engines[0].url, served_name=None, error=EngineGone("gone"))

    assert {pick_engine(None) for _ in range(10)} == {engines[1].url}
    with system_scope("test"):
        assert OutboxMessage.objects.filter(task="workers.upkeep.reconcile_engines").count() == 1
    reconcile()  # it was there after all
    assert set(states().values()) == {EngineState.READY}


def test_all_engines_gone_is_unavailable_at_once(engines: list[FakeEngine]) -> None:
    reconcile()
    for engine in engines:
        registry.report(url=engine.url, served_name=None, error=EngineGone("gone"))
    with pytest.raises(EngineUnavailable):
        pick_engine(None)


def test_a_request_that_finds_its_adapter_missing_sends_the_next_elsewhere(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")
    reconcile()
    first = pick_engine("p1-v1-aa")
    next(engine for engine in engines if engine.url == first).adapters.clear()

    registry.report(url=first, served_name="p1-v1-aa", error=AdapterMissing("missing"))

    assert pick_engine("p1-v1-aa") != first
    assert set(states().values()) == {EngineState.READY}  # others are still served there
    with system_scope("test"):
        assert OutboxMessage.objects.filter(task="workers.upkeep.reconcile_engines").count() == 1
    reconcile()
    assert pick_engine("p1-v1-aa") == first
