"""Room for one more adapter: what goes, what stays, and an engine that does not let go."""

import datetime as dt
import threading
import time
from pathlib import Path

import pytest
import redis
from django.utils import timezone
from pytest_django import Settings

from apps.engines import registry, room
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import AdapterMissing, EngineBusy, EngineUnavailable
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from apps.engines.slots import shared
from apps.engines.slots.rules import Claim, Standing
from embedded.home import free_port
from tests.apps.engines.conftest import Want
from tests.fake_engine import FakeEngine


@pytest.fixture
def one(engines: list[FakeEngine], settings: Settings, valkey: redis.Redis) -> FakeEngine:
    """One engine with three places."""
    assert valkey.ping()
    settings.ENGINE_URLS = [engines[0].url]
    engines[0].max_loaded_loras = 3
    return engines[0]


def uses(valkey: redis.Redis, engine: FakeEngine, *names: str) -> None:
    """Let a gateway process say that requests use these adapters."""
    now = time.time()
    standing = Standing({name: Claim("t", now) for name in names}, {})
    valkey.hset(shared._standings_key(engine.url), "gateway", shared._written(standing, now))


def used_at(valkey: redis.Redis, engine: FakeEngine, **times: float) -> None:
    valkey.zadd(shared._uses_key(engine.url), {f"{name}-v1-aa": at for name, at in times.items()})


def loads() -> dict[str, str]:
    return dict(LoadedAdapter.objects.values_list("adapter__served_name", "state"))


def test_the_least_recently_used_makes_room(one: FakeEngine, want: Want, valkey: redis.Redis) -> None:
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    used_at(valkey, one, pa=30.0, pb=10.0, pc=20.0)

    room.make_room(one.url, for_name="pd-v1-aa")

    assert sorted(one.adapters) == ["pa-v1-aa", "pc-v1-aa"]
    assert loads()["pb-v1-aa"] == LoadState.UNLOADED
    with pytest.raises(AdapterMissing):
        pick_engine("pb-v1-aa")
    assert pick_engine("pa-v1-aa") == one.url


def test_what_requests_use_stays(one: FakeEngine, want: Want, valkey: redis.Redis) -> None:
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    used_at(valkey, one, pa=30.0, pb=10.0, pc=20.0)
    uses(valkey, one, "pb-v1-aa", "pc-v1-aa")

    room.make_room(one.url, for_name="pd-v1-aa")
    assert sorted(one.adapters) == ["pb-v1-aa", "pc-v1-aa"]

    reconcile()
    uses(valkey, one, "pa-v1-aa", "pb-v1-aa", "pc-v1-aa")
    with pytest.raises(EngineBusy):
        room.make_room(one.url, for_name="pd-v1-aa")
    assert sorted(one.adapters) == ["pa-v1-aa", "pb-v1-aa", "pc-v1-aa"]
    assert set(loads().values()) == {LoadState.PROBED}


def test_while_nobody_knows_what_requests_use_nothing_that_is_wanted_goes(
    one: FakeEngine, want: Want, valkey: redis.Redis, settings: Settings
) -> None:
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    uses(valkey, one, "pa-v1-aa", "pb-v1-aa", "pc-v1-aa")
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    with pytest.raises(EngineBusy):
        room.make_room(one.url, for_name="pd-v1-aa")
    assert sorted(one.adapters) == ["pa-v1-aa", "pb-v1-aa", "pc-v1-aa"]
    assert set(loads().values()) == {LoadState.PROBED}


def test_a_request_that_takes_its_seat_meanwhile_keeps_the_adapter(
    one: FakeEngine, want: Want, valkey: redis.Redis
) -> None:
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    used_at(valkey, one, pa=10.0, pb=20.0, pc=30.0)
    late = threading.Timer(room._ADMITTED_S / 2, lambda: uses(valkey, one, "pa-v1-aa"))
    late.start()

    room.make_room(one.url, for_name="pd-v1-aa")
    late.join()

    assert sorted(one.adapters) == ["pa-v1-aa", "pc-v1-aa"]
    assert loads()["pa-v1-aa"] == LoadState.PROBED


def test_the_engine_is_never_left_to_evict_on_its_own(one: FakeEngine, want: Want) -> None:
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    want("pd-v1-aa")

    reconcile()  # it has no room, so the newest waits until it is asked for

    assert sorted(one.adapters) == ["pa-v1-aa", "pb-v1-aa", "pc-v1-aa"]
    room.make_room(one.url, for_name="pd-v1-aa")
    reconcile()
    assert len(one.adapters) == 3
    assert "pd-v1-aa" in one.adapters


def test_an_unwanted_adapter_that_a_request_still_uses_is_not_unloaded(
    one: FakeEngine, want: Want, valkey: redis.Redis, settings: Settings
) -> None:
    want("pa-v1-aa")
    want("pb-v1-aa")
    reconcile()
    registry.unwant(served_names=["pa-v1-aa"])
    since = timezone.now() - dt.timedelta(seconds=settings.ENGINE_TIMEOUT_S + 60)
    DesiredAdapter.objects.filter(served_name="pa-v1-aa").update(unwanted_at=since)
    uses(valkey, one, "pa-v1-aa")

    assert reconcile()[0].unloaded == []
    valkey.flushdb()
    assert reconcile()[0].unloaded == ["pa-v1-aa"]


@pytest.fixture
def restarts(tmp_path: Path, settings: Settings) -> Path:
    """Where the command that restarts engines writes their addresses."""
    settings.ENGINE_RESTART_COMMAND = f"sh -c 'echo \"$1\" >> {tmp_path}/restarts' --"
    return tmp_path / "restarts"


@pytest.fixture
def stuck(one: FakeEngine, want: Want, restarts: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """An engine that has just not let go of an adapter."""
    assert not restarts.exists()
    for name in ("pa-v1-aa", "pb-v1-aa", "pc-v1-aa"):
        want(name)
    reconcile()
    monkeypatch.setattr(room, "UNLOAD_S", 0.2)
    one.hold_unload = threading.Event()
    with pytest.raises(EngineBusy):
        room.make_room(one.url, for_name="pd-v1-aa")
    return one


def test_an_engine_that_does_not_let_go_gets_no_more_requests(stuck: FakeEngine) -> None:
    row = Engine.objects.get(url=stuck.url)
    assert row.state == EngineState.RECYCLING
    assert "did not let go of pa-v1-aa" in row.reason
    with pytest.raises(EngineUnavailable):
        pick_engine("pb-v1-aa")


def test_it_is_restarted_when_its_requests_have_ended_and_comes_back(
    stuck: FakeEngine, valkey: redis.Redis, restarts: Path
) -> None:
    uses(valkey, stuck, "pb-v1-aa")
    reconcile()
    assert not restarts.exists()
    valkey.flushdb()

    reconcile()
    reconcile()  # it is asked for once, not at every look

    assert restarts.read_text().split() == [stuck.url]
    assert Engine.objects.get().state == EngineState.RECYCLING
    assert stuck.hold_unload is not None
    stuck.hold_unload.set()
    stuck.boot += 1
    stuck.adapters.clear()
    (done,) = reconcile()
    assert (done.state, done.restarted) == (EngineState.READY, True)
    assert Engine.objects.get().recycle_at is None
    assert pick_engine("pb-v1-aa") == stuck.url


def test_one_whose_requests_never_end_is_restarted_after_the_longest_request(
    stuck: FakeEngine, valkey: redis.Redis, restarts: Path, settings: Settings
) -> None:
    uses(valkey, stuck, "pb-v1-aa")
    long_ago = timezone.now() - dt.timedelta(seconds=settings.ENGINE_TIMEOUT_S + 1)
    Engine.objects.update(recycle_at=long_ago)

    reconcile()

    assert restarts.exists()


def test_without_a_command_it_waits_for_an_operator(
    stuck: FakeEngine, settings: Settings, restarts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ENGINE_RESTART_COMMAND = ""
    reconcile()
    assert "must be restarted by hand" in caplog.text
    assert Engine.objects.get().state == EngineState.RECYCLING
    assert not restarts.exists()
