"""A version becomes live only when every engine answers with it;
whatever dies, the old one answers until then."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection

from apps.accounts.models import Tenant
from apps.adapters import placement, publishing, services
from apps.adapters.models import AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.alerts.models import Alert
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import EngineBusy, EngineUnavailable
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from kernel.errors import AttuneError, Conflict, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.adapters.conftest import MakeVersion
from tests.apps.adapters.files import CHANGE, answers, configuration
from tests.fake_engine import FakeEngine


def live_of(policy: Policy) -> AdapterVersion | None:
    return Policy.objects.select_related("live").get(pk=policy.pk).live


def moves(policy: Policy) -> list[tuple[int | None, int | None]]:
    rows = PointerMove.objects.filter(policy=policy).order_by("created_at")
    return list(rows.values_list("from_version__number", "to_version__number"))


def test_a_good_version_goes_live_on_every_engine(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()

    done = publishing.publish(version.pk)

    assert (done.outcome, done.reason) == ("live", "")
    version.refresh_from_db()
    assert (version.state, live_of(policy)) == (VersionState.READY, version)
    assert version.ready_at is not None
    assert [list(engine.adapters) for engine in ready] == [[version.served_name]] * 2
    loads = LoadedAdapter.objects.order_by("engine__url")
    assert [load.state for load in loads] == [LoadState.PROBED] * 2
    assert [load.probe["change"] for load in loads] == [pytest.approx(CHANGE)] * 2
    assert list(GateResult.objects.order_by("check_name").values_list("check_name", "passed")) == [
        ("preflight", True),
        ("probe", True),
    ]
    assert moves(policy) == [(None, 1)]
    assert pick_engine(version.served_name) in {engine.url for engine in ready}


def test_publishing_again_changes_nothing(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    asked = [len(engine.requests) for engine in ready]

    again = publishing.publish(version.pk)

    assert again.outcome == "live"
    assert moves(policy) == [(None, 1)]
    assert [len(engine.requests) for engine in ready] == asked


@pytest.mark.parametrize(
    "where",
    [
        "apps.adapters.publishing.preflight",
        "apps.adapters.placement.desire",
        "apps.adapters.placement.place_everywhere",
        "apps.engines.registry.record",
        "apps.adapters.publishing._superseded",
        "apps.adapters.publishing.point",
        "apps.adapters.services.audit.record",
        "apps.engines.registry.unwant",
    ],
)
def test_a_crash_anywhere_leaves_the_old_version_and_a_second_try_finishes(
    ready: list[FakeEngine],
    policy: Policy,
    make_version: MakeVersion,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)

    def crash(*_: Any, **__: Any) -> None:
        raise MemoryError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(where, crash)
        with pytest.raises(MemoryError):
            publishing.publish(second.pk)
    assert live_of(policy) == first
    second.refresh_from_db()
    assert second.state == VersionState.CREATED

    assert publishing.publish(second.pk).outcome == "live"
    assert live_of(policy) == second
    assert moves(policy) == [(None, 1), (1, 2)]
    assert GateResult.objects.filter(version=second).count() == 2


SPOILT = [
    ({"config": configuration(use_rslora=True)}, "use_rslora"),
    ({"config": configuration(r=8)}, "rank 8 is not between 1 and the engines' 4"),
    ({"config": configuration(lora_alpha=16)}, "rank and alpha are 4 and 16, the version says 4 and 8"),
    ({"change": lambda arrays: arrays.update({k: v * np.nan for k, v in arrays.items()})}, "NaN or infinite"),
    ({"change": lambda arrays: arrays.clear()}, "lacks lora_A and lora_B"),
    ({"manifest": {}}, "no probe values"),
    ({"manifest": {"probe": [{"ids": [1, 2]}]}}, "probe values are of no use"),
]


@pytest.mark.parametrize(("files", "why"), SPOILT, ids=[why for _, why in SPOILT])
def test_what_preflight_refuses_no_engine_ever_sees(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion, files: dict[str, Any], why: str
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    asked = [len(engine.requests) for engine in ready]
    version = make_version(first, seed=1, **files)

    done = publishing.publish(version.pk)

    assert done.outcome == "refused"
    assert why in done.reason
    version.refresh_from_db()
    assert (version.state, version.reason) == (VersionState.REFUSED, done.reason)
    assert [list(engine.adapters) for engine in ready] == [[first.served_name]] * 2
    assert [len(engine.requests) for engine in ready] == asked
    assert live_of(policy) == first
    assert not DesiredAdapter.objects.filter(served_name=version.served_name, wanted=True).exists()
    assert AuditEntry.objects.filter(action="version.refuse", target=f"version:{version.pk}").count() == 1


def test_a_file_changed_after_the_commit_is_refused(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion, store: Path
) -> None:
    version = make_version()
    path = store / version.path / "adapter_model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    done = publishing.publish(version.pk)

    assert done.outcome == "refused"
    assert f"the version says {version.sha256[:16]}" in done.reason
    assert [engine.adapters for engine in ready] == [{}, {}]


def test_an_adapter_that_changes_nothing_is_refused_by_the_probe(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    # 200 from the engine, and the base still answers: modules that bind to nothing, a path that is not there
    answers(ready[1], applied=0.0)
    version = make_version()

    done = publishing.publish(version.pk)

    assert done.outcome == "refused"
    assert "probe: the adapter changes nothing on this engine" in done.reason
    assert ready[1].url not in done.reason
    assert live_of(policy) is None
    (gate,) = GateResult.objects.filter(check_name="probe")
    results = {one["url"]: one["result"] for one in gate.detail["engines"]}
    assert (gate.passed, results) == (False, {ready[0].url: "probed", ready[1].url: "refused"})
    loads = LoadedAdapter.objects.values_list("engine__url", "state")
    assert dict(loads) == {ready[0].url: "probed", ready[1].url: "failed"}


def test_an_adapter_at_the_wrong_scale_is_refused(
    ready: list[FakeEngine], make_version: MakeVersion, settings: Any
) -> None:
    settings.PROBE_TOLERANCE = 10.0
    answers(ready[0], applied=0.1)

    done = publishing.publish(make_version().pk)

    assert (done.outcome, "applies 0.10 of the adapter's change" in done.reason) == ("refused", True)


def test_an_engine_with_a_smaller_rank_is_not_asked_to_load(
    ready: list[FakeEngine], make_version: MakeVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version()
    adapter = placement.desire(version)
    adapter.rank = 32

    placed = placement.place(adapter)

    assert [one.reason for one in placed] == ["rank 32 is larger than the server's 16"] * 2
    assert [engine.adapters for engine in ready] == [{}, {}]


def test_without_a_ready_engine_nothing_is_decided(
    engines: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()

    with pytest.raises(EngineUnavailable):
        publishing.publish(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.CREATED

    reconcile()
    # what was wanted meanwhile is on the engines before they are ready
    assert [list(engine.adapters) for engine in engines] == [[version.served_name]] * 2
    assert publishing.publish(version.pk).outcome == "live"


def test_an_engine_that_dies_is_left_out_and_gets_no_requests_for_it(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    ready[1].stop()
    version = make_version()

    assert publishing.publish(version.pk).outcome == "live"
    assert {pick_engine(version.served_name) for _ in range(10)} == {ready[0].url}


def test_all_engines_silent_is_tried_again(ready: list[FakeEngine], make_version: MakeVersion) -> None:
    for engine in ready:
        engine.stop()
    version = make_version()

    with pytest.raises(EngineUnavailable, match="no engine took the version"):
        publishing.publish(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.CREATED


def test_a_slow_engine_is_given_up_at_its_deadline(
    ready: list[FakeEngine], make_version: MakeVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "DEADLINE_S", 0.5)
    ready[1].load_s = 5.0
    version = make_version()

    assert publishing.publish(version.pk).outcome == "live"
    assert LoadedAdapter.objects.get(engine__url=ready[1].url).reason == "not loaded and probed within 0 s"
    assert pick_engine(version.served_name) == ready[0].url


def test_a_rollback_while_it_is_published_wins(
    ready: list[FakeEngine],
    tenant: Tenant,
    policy: Policy,
    make_version: MakeVersion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)
    third = make_version(second, seed=2)
    real = placement.place

    def place_and_meanwhile(adapter: DesiredAdapter) -> Any:
        placed = real(adapter)
        with monkeypatch.context() as patched:
            patched.setattr(placement, "place", real)
            services.rollback(tenant=tenant.slug, policy="default", number=1)
        return placed

    monkeypatch.setattr(placement, "place", place_and_meanwhile)
    done = publishing.publish(third.pk)

    assert (done.outcome, done.reason) == ("ready", "not live: the policy was rolled back meanwhile")
    assert live_of(policy) == first
    assert moves(policy) == [(None, 1), (1, 2), (2, 1)]


def test_a_rollback_to_the_bare_base_wins_too(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    services.rollback(tenant=tenant.slug, policy="default", number=0)

    done = publishing.publish(second.pk)

    assert (done.outcome, live_of(policy)) == ("ready", None)
    # it is there to be chosen by hand
    services.rollback(tenant=tenant.slug, policy="default", number=2)
    assert live_of(policy) == second


def test_what_was_left_behind_is_checked_and_not_measured(
    ready: list[FakeEngine], tenant: Tenant, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    services.rollback(tenant=tenant.slug, policy="default", number=0)
    asked: list[AdapterVersion] = []

    def choose(version: AdapterVersion) -> str:
        asked.append(version)
        return ""

    done = publishing.publish(second.pk, choose=choose)

    assert (done.outcome, done.reason, asked) == (
        "ready",
        "not live: the policy was rolled back meanwhile",
        [],
    )
    assert GateResult.objects.filter(version=second, passed=True).count() == 2


def lost(version: AdapterVersion, engines: list[FakeEngine]) -> None:
    """An engine forgot a version meanwhile: it has to be loaded from its files."""
    LoadedAdapter.objects.filter(adapter__served_name=version.served_name).delete()
    for engine in engines:
        engine.adapters.pop(version.served_name)


@pytest.mark.parametrize("damage", ["gone", "refused", "refused before"])
def test_what_cannot_be_chosen_is_ready_says_why_and_is_not_tried_for_ever(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion, store: Path, damage: str
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    first.refresh_from_db()
    second = make_version(first, seed=1)
    lost(first, ready)
    if damage == "gone":
        (store / first.path / "manifest.json").unlink()
    else:
        for engine in ready:
            answers(engine, applied=0.0)

    def choose(version: AdapterVersion) -> str:
        assert version == second
        if damage == "refused before":
            with pytest.raises(Conflict):
                placement.engine_for(first)
        placement.engine_for(first)  # as measuring does
        return ""

    real = placement.place

    def only_second(adapter: DesiredAdapter, **more: Any) -> Any:
        for engine in ready:
            answers(engine, applied=1.0 if adapter.served_name == second.served_name else 0.0)
        return real(adapter, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(placement, "place", only_second)
        done = publishing.publish(second.pk, choose=choose)

    why = {
        "gone": f"{Path(first.path).name}: no readable manifest.json",
        "refused": "version 1 does not answer: the adapter changes nothing on this engine",
        "refused before": "no engine serves this version as it was trained",
    }[damage]
    assert done.outcome == "ready"
    assert done.reason.startswith(f"not chosen: {why}")
    second.refresh_from_db()
    assert (second.state, second.reason) == (VersionState.READY, done.reason)
    assert live_of(policy) == first
    gate = GateResult.objects.get(version=second, check_name="held-out")
    assert (gate.passed, gate.detail["reason"]) == (False, done.reason.removeprefix("not chosen: "))
    told = Alert.objects.get(version_id=second.pk)
    assert (told.event, told.severity) == ("version.refused", "warning")
    assert f"Version 2 of default could not be chosen: {why}" in told.words
    assert publishing.publish(second.pk, choose=choose) == done  # the message comes twice


@pytest.mark.parametrize("error", [EngineUnavailable("down"), EngineBusy("full")], ids=["down", "busy"])
def test_what_is_only_down_or_busy_decides_nothing(
    ready: list[FakeEngine], make_version: MakeVersion, error: AttuneError
) -> None:
    def choose(_: AdapterVersion) -> str:
        raise error

    version = make_version()
    with pytest.raises(type(error)):
        publishing.publish(version.pk, choose=choose)
    version.refresh_from_db()
    assert version.state == VersionState.CREATED
    assert not Alert.objects.filter(version_id=version.pk).exists()
    assert publishing.publish(version.pk, choose=lambda _: "").outcome == "live"


def test_versions_published_out_of_order_never_move_the_pointer_back(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    third = make_version(second, seed=2)

    assert publishing.publish(third.pk).outcome == "live"
    late = publishing.publish(second.pk)

    assert (late.outcome, late.reason) == ("ready", "not live: the policy is on another branch by now")
    assert live_of(policy) == third
    assert moves(policy) == [(None, 1), (1, 3)]


def test_old_versions_are_wanted_no_more_but_stay_loaded(
    ready: list[FakeEngine], make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)

    rows = dict(DesiredAdapter.objects.values_list("served_name", "wanted"))
    assert rows == {first.served_name: False, second.served_name: True}
    assert [sorted(engine.adapters) for engine in ready] == [sorted(rows)] * 2


def test_a_served_name_is_never_reused(ready: list[FakeEngine], make_version: MakeVersion) -> None:
    first = make_version()
    same_files = make_version(first)  # the same bytes as another version: another name all the same

    assert first.sha256 == same_files.sha256
    assert first.served_name != same_files.served_name
    assert same_files.served_name.endswith(f"-v2-{first.sha256[:8]}")


def test_an_unknown_version_is_said_so(ready: list[FakeEngine], policy: Policy) -> None:
    with pytest.raises(NotFound):
        publishing.publish(policy.pk)


@pytest.mark.django_db(transaction=True)
def test_two_workers_publish_the_same_version_once(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    outcomes: list[str] = []

    def work() -> None:
        with tenant_scope(tenant.pk):
            outcomes.append(publishing.publish(version.pk).outcome)
        connection.close()

    threads: list[threading.Thread] = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert outcomes == ["live"] * 3
    assert moves(policy) == [(None, 1)]
    assert Engine.objects.filter(state=EngineState.READY).count() == 2
