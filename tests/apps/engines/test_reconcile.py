"""Engines come, go, restart and forget; requests only go where the adapter has answered."""

import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.engines import registry, room, services
from apps.engines.client import EngineClient
from apps.engines.models import DesiredAdapter, Engine, EngineOrder, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import AdapterMissing, EngineSilent, EngineUnavailable
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from kernel.errors import Conflict
from kernel.tenancy import tenant_scope
from tests.apps.adapters.files import answers
from tests.apps.engines.conftest import Want
from tests.fake_engine import FakeEngine


def restart(engine: FakeEngine) -> None:
    engine.boot += 1
    engine.adapters.clear()
    engine.requests.clear()


def states() -> dict[str, str]:
    return dict(Engine.objects.values_list("url", "state"))


def unwanted_for(name: str, seconds: float) -> None:
    registry.unwant(served_names=[name])
    since = timezone.now() - dt.timedelta(seconds=seconds)
    DesiredAdapter.objects.filter(served_name=name).update(unwanted_at=since)


def test_engines_are_ready_once_they_have_been_looked_at(engines: list[FakeEngine]) -> None:
    with pytest.raises(EngineUnavailable):
        pick_engine(None)

    reconcile()

    assert states() == {engine.url: EngineState.READY for engine in engines}
    assert set(Engine.objects.values_list("max_loaded_loras", "model_path")) == {(8, "fake")}
    assert {pick_engine(None) for _ in range(50)} == {engine.url for engine in engines}


def test_one_engine_is_enough(engines: list[FakeEngine], settings: Settings, want: Want) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    want("p1-v1-aa")

    reconcile()

    assert pick_engine("p1-v1-aa") == pick_engine(None) == engines[0].url


def test_what_is_wanted_is_loaded_and_proven_before_requests_come(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")

    done = reconcile()

    assert [one.proven for one in done] == [["p1-v1-aa"]] * 2
    assert [engine.adapters for engine in engines] == [{"p1-v1-aa": "/store/p1-v1-aa"}] * 2
    assert {row.state for row in LoadedAdapter.objects.all()} == {LoadState.PROBED}


def test_reconciling_again_asks_nothing_of_an_engine_that_has_everything(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")
    reconcile()
    asked = [len(engine.requests) for engine in engines]

    again = reconcile()

    assert [(one.proven, one.failed, one.restarted) for one in again] == [([], {}, False)] * 2
    assert [len(engine.requests) for engine in engines] == asked


def test_after_a_restart_adapters_are_back_before_requests_are(
    engines: list[FakeEngine], want: Want, monkeypatch: pytest.MonkeyPatch
) -> None:
    want("p1-v1-aa")
    reconcile()
    restart(engines[0])
    during: list[dict[str, str]] = []
    settle = services._settle

    def watched(engine: Engine, seen: services.Seen, **more: Any) -> services.Reconciled:
        during.append(states())
        return settle(engine, seen, **more)

    monkeypatch.setattr(services, "_settle", watched)
    done = {one.url: one for one in reconcile()}

    assert (done[engines[0].url].restarted, done[engines[0].url].proven) == (True, ["p1-v1-aa"])
    assert (done[engines[1].url].restarted, done[engines[1].url].proven) == (False, [])
    # while it was being brought back, nobody was sent to it
    assert during[0][engines[0].url] == EngineState.STARTING
    assert during[0][engines[1].url] == EngineState.READY
    assert states()[engines[0].url] == EngineState.READY


def test_a_restart_that_nobody_has_noticed_yet_is_noticed_by_the_boot(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")
    reconcile()
    Engine.objects.filter(url=engines[0].url).update(boot_id="another boot")

    assert {pick_engine("p1-v1-aa") for _ in range(10)} == {engines[1].url}


def test_an_engine_that_is_gone_gets_nothing_until_it_is_back(engines: list[FakeEngine], want: Want) -> None:
    want("p1-v1-aa")
    reconcile()
    engines[0].ready = False

    reconcile()
    assert states()[engines[0].url] == EngineState.LOST
    assert pick_engine("p1-v1-aa") == pick_engine(None) == engines[1].url

    engines[0].ready = True
    reconcile()
    assert states()[engines[0].url] == EngineState.READY


def test_all_engines_gone_is_unavailable(engines: list[FakeEngine], want: Want) -> None:
    want("p1-v1-aa")
    reconcile()
    for engine in engines:
        engine.stop()
    reconcile()

    for name in ("p1-v1-aa", None):
        with pytest.raises(EngineUnavailable) as refused:
            pick_engine(name)
        assert (refused.value.status, refused.value.retry_after_s) == (503, 5.0)


def test_an_adapter_that_no_engine_has_is_never_routed_to_the_base(
    engines: list[FakeEngine], want: Want
) -> None:
    reconcile()
    want("p1-v1-aa")

    with pytest.raises(AdapterMissing):
        pick_engine("p1-v1-aa")


def test_an_engine_that_serves_the_base_under_the_name_is_not_used_for_it(
    engines: list[FakeEngine], want: Want
) -> None:
    answers(engines[0], applied=0.0)
    want("p1-v1-aa")

    done = {one.url: one for one in reconcile()}

    assert "changes nothing" in done[engines[0].url].failed["p1-v1-aa"]
    assert {pick_engine("p1-v1-aa") for _ in range(10)} == {engines[1].url}
    assert states() == {
        engine.url: EngineState.READY for engine in engines
    }  # others may still be served there


def test_an_adapter_that_is_lost_silently_is_found_by_the_timer(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")
    reconcile()
    for engine in engines:
        answers(engine, applied=0.0)
    reconcile()
    assert pick_engine("p1-v1-aa")  # not due yet

    old = timezone.now() - dt.timedelta(seconds=services.REPROBE_S + 1)
    LoadedAdapter.objects.update(probed_at=old)
    reconcile()

    with pytest.raises(AdapterMissing):
        pick_engine("p1-v1-aa")
    LoadedAdapter.objects.update(probed_at=old)
    for engine in engines:
        answers(engine)
    reconcile()
    assert pick_engine("p1-v1-aa")


def test_an_adapter_that_the_engine_evicted_is_loaded_again(engines: list[FakeEngine], want: Want) -> None:
    want("p1-v1-aa")
    reconcile()
    engines[0].adapters.clear()

    reconcile()

    assert list(engines[0].adapters) == ["p1-v1-aa"]


def test_a_busy_engine_keeps_its_requests(engines: list[FakeEngine], want: Want) -> None:
    want("p1-v1-aa")
    reconcile()
    want("p1-v2-bb")
    engines[0].refuse_next(503, times=100)  # ready, and too busy to be asked

    done = {one.url: one for one in reconcile()}

    assert "p1-v2-bb" in done[engines[0].url].failed
    assert states()[engines[0].url] == EngineState.READY
    assert pick_engine("p1-v2-bb") == engines[1].url


def test_an_engine_that_stays_silent_is_lost_after_a_while(
    engines: list[FakeEngine], want: Want, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile()
    long_ago = timezone.now() - dt.timedelta(seconds=services.SILENT_S + 1)
    with monkeypatch.context() as silence:
        silence.setattr(EngineClient, "info", _silent)
        reconcile()
        assert set(states().values()) == {EngineState.READY}

        Engine.objects.filter(url=engines[0].url).update(seen_at=long_ago)
        reconcile()
        assert states() == {engines[0].url: EngineState.LOST, engines[1].url: EngineState.READY}

    reconcile()
    assert set(states().values()) == {EngineState.READY}


async def _silent(_: EngineClient) -> None:
    raise EngineSilent("the engine does not answer in time")


def test_a_starting_engine_that_cannot_be_asked_stays_without_requests(
    engines: list[FakeEngine], want: Want
) -> None:
    want("p1-v1-aa")
    engines[0].refuse_next(503, times=100)

    reconcile()

    assert states() == {engines[0].url: EngineState.STARTING, engines[1].url: EngineState.READY}


def test_the_same_adapter_stays_on_the_same_engine(engines: list[FakeEngine], want: Want) -> None:
    names = [f"p{i}-v1-aa" for i in range(8)]
    for name in names:
        want(name)
    reconcile()

    first = {name: pick_engine(name) for name in names}

    assert all(pick_engine(name) == url for name, url in first.items() for _ in range(5))
    assert set(first.values()) == {engine.url for engine in engines}  # 1 in 128 runs of random ports


def test_names_are_immutable(engines: list[FakeEngine], want: Want) -> None:
    want("p1-v1-aa")

    for changed in ({"sha256": "b" * 64}, {"path": "/store/other"}):
        with pytest.raises(Conflict, match="immutable"):
            want("p1-v1-aa", **changed)
    assert want("p1-v1-aa").wanted


def test_an_engine_no_longer_configured_gets_no_requests(
    engines: list[FakeEngine], settings: Settings
) -> None:
    reconcile()
    settings.ENGINE_URLS = [engines[0].url]

    reconcile()
    assert states() == {engines[0].url: EngineState.READY, engines[1].url: EngineState.DRAINING}
    assert {pick_engine(None) for _ in range(20)} == {engines[0].url}

    settings.ENGINE_URLS = [engine.url for engine in engines]
    reconcile()
    assert states()[engines[1].url] == EngineState.READY


def test_an_address_that_nobody_configures_any_more_is_forgotten_after_a_day(
    engines: list[FakeEngine], settings: Settings, want: Want
) -> None:
    want("p1-v1-aa")
    reconcile()
    gone, ordered = engines[1].url, "http://127.0.0.1:2"
    Engine.objects.create(url=ordered, ordered=EngineOrder.DRAIN)
    settings.ENGINE_URLS = [engines[0].url]
    old = timezone.now() - dt.timedelta(hours=25)

    reconcile()
    assert Engine.objects.filter(url=gone).exists()
    Engine.objects.exclude(url=engines[0].url).update(seen_at=old)
    reconcile()

    assert set(Engine.objects.values_list("url", flat=True)) == {engines[0].url, ordered}
    assert [row.engine.url for row in LoadedAdapter.objects.select_related("engine")] == [engines[0].url]


def test_unwanted_adapters_go_late_and_only_for_room(
    engines: list[FakeEngine], want: Want, settings: Settings
) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    names = [f"p1-v{i}-aa" for i in range(1, 8)]
    for name in names[:5]:
        want(name)
    reconcile()
    for name in names[:4]:
        unwanted_for(name, settings.ENGINE_TIMEOUT_S + 60)
    reconcile()
    assert sorted(engines[0].adapters) == names[:5]  # 5 of 8: there is room

    for name in names[5:]:
        want(name)
    done = reconcile()

    # 7 loaded, 2 of 8 places are kept free: the one unwanted for longest goes
    assert done[0].unloaded == [names[0]]
    assert sorted(engines[0].adapters) == names[1:]
    assert LoadedAdapter.objects.get(adapter__served_name=names[0]).state == LoadState.UNLOADED


def test_what_a_request_may_still_use_is_not_unloaded(
    engines: list[FakeEngine], want: Want, settings: Settings
) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    names = [f"p1-v{i}-aa" for i in range(1, 9)]
    for name in names:
        want(name)
    reconcile()
    for name in names[:4]:
        unwanted_for(name, settings.ENGINE_TIMEOUT_S - 60)

    assert reconcile()[0].unloaded == []
    assert len(engines[0].adapters) == 8


def test_no_more_is_loaded_than_fits(engines: list[FakeEngine], want: Want, settings: Settings) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    engines[0].max_loaded_loras = 3
    for i in range(1, 6):
        want(f"p1-v{i}-aa")

    reconcile()

    assert sorted(engines[0].adapters) == ["p1-v3-aa", "p1-v4-aa", "p1-v5-aa"]  # the newest


@pytest.mark.django_db(transaction=True)
def test_who_wants_an_adapter_back_waits_until_it_is_unloaded(
    engines: list[FakeEngine], want: Want, tenant: Tenant, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ENGINE_URLS = [engines[0].url]
    engines[0].max_loaded_loras = 2
    want("p1-v1-aa")
    reconcile()
    unwanted_for("p1-v1-aa", settings.ENGINE_TIMEOUT_S + 60)
    unloading, go_on, wanted_again = threading.Event(), threading.Event(), threading.Event()
    real = room._unload_from

    async def slowly(url: str, name: str) -> None:
        unloading.set()
        go_on.wait(10)
        await real(url, name)

    monkeypatch.setattr(room, "_unload_from", slowly)

    def unload() -> None:
        reconcile()
        connection.close()

    def want_again() -> None:
        with tenant_scope(tenant.pk):
            want("p1-v1-aa")
        wanted_again.set()
        connection.close()

    threads = [threading.Thread(target=unload), threading.Thread(target=want_again)]
    threads[0].start()
    assert unloading.wait(10)
    threads[1].start()
    assert not wanted_again.wait(0.3)
    go_on.set()
    for thread in threads:
        thread.join(10)

    assert wanted_again.is_set()
    assert engines[0].adapters == {}
    with pytest.raises(AdapterMissing):  # it counts as unloaded, so whoever wants it loads it
        pick_engine("p1-v1-aa")
    reconcile()
    assert pick_engine("p1-v1-aa") == engines[0].url
