"""Policies, version rows, the pointer, and going back."""

import json
import threading
import uuid
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from apps.accounts.models import Tenant
from apps.adapters import placement, publishing, services
from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.adapters.selectors import version_of
from apps.adapters.store import StoreError
from apps.engines.models import DesiredAdapter, LoadedAdapter, LoadState
from apps.engines.replies import AdapterMissing, EngineUnavailable
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.conftest import MakeVersion
from tests.apps.adapters.files import RANK, directory_of, write_adapter
from tests.fake_engine import FakeEngine


def test_a_policy_starts_with_the_bare_base(policy: Policy) -> None:
    assert (policy.live, policy.base_model) == (None, "smollm2-135m-instruct")
    assert AuditEntry.objects.filter(action="policy.create", target=f"policy:{policy.pk}").count() == 1


def test_names_are_unique_within_a_tenant_only(tenant: Tenant, policy: Policy) -> None:
    with pytest.raises(Conflict, match="there is a policy named default already"):
        services.create_policy(tenant=tenant, name="default")
    assert Policy.objects.count() == 1
    with system_scope("test"):
        other = Tenant.objects.create(slug=f"o-{uuid.uuid4().hex[:8]}", name="Other")
    with tenant_scope(other.pk):
        services.create_policy(tenant=other, name="default")
        assert Policy.objects.count() == 1


@pytest.mark.parametrize("name", ["", "Default", "a b", "@x", "x" * 61, "default@1", "coder\n"])
def test_a_policys_name_is_checked(tenant: Tenant, policy: Policy, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        services.create_policy(tenant=tenant, name=name)
    assert refused.value.field == "name"


def test_versions_are_numbered_and_know_their_lineage(policy: Policy, make_version: MakeVersion) -> None:
    first = make_version()
    second = make_version(first, seed=1)

    assert [(v.number, v.depth, v.parent) for v in (first, second)] == [(1, 1, None), (2, 2, first)]
    assert first.served_name == f"p{policy.pk.hex[-8:]}-v1-{first.sha256[:8]}"
    assert (first.state, first.metrics) == (VersionState.CREATED, {"loss": 1.0})


def test_no_row_without_whole_files(policy: Policy, store: Path, base_model: Path, tmp_path: Path) -> None:
    directory = directory_of(store, policy, 1)
    sha256 = write_adapter(directory, base_model)
    facts = {
        "policy": policy,
        "parent": None,
        "run_id": uuid.uuid4(),
        "rank": RANK,
        "alpha": 8,
        "metrics": {},
    }

    with pytest.raises(StoreError, match="expected 0000"):
        services.create_version(artefact_dir=directory, sha256="0" * 64, **facts)
    with pytest.raises(StoreError, match="not in the adapter store"):
        services.create_version(artefact_dir=tmp_path / "elsewhere", sha256=sha256, **facts)
    (directory / "adapter_model.safetensors").unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        services.create_version(artefact_dir=directory, sha256=sha256, **facts)
    assert AdapterVersion.objects.count() == 0


def live_of(policy: Policy) -> AdapterVersion | None:
    return Policy.objects.select_related("live").get(pk=policy.pk).live


def test_a_number_means_a_ready_version(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)

    assert version_of(policy, 1) == first
    assert version_of(policy, 0) is None
    with pytest.raises(Conflict, match="version 2 of default is created"):
        version_of(policy, second.number)
    with pytest.raises(NotFound):
        version_of(policy, 3)


def test_an_old_version_can_be_evaluated_after_it_was_unloaded(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)
    for engine in ready:
        engine.boot += 1
        engine.adapters.clear()
    reconcile()
    first.refresh_from_db()
    second.refresh_from_db()

    url = placement.engine_for(first)

    assert url in {engine.url for engine in ready}
    assert first.served_name in next(engine for engine in ready if engine.url == url).adapters
    assert not DesiredAdapter.objects.get(served_name=first.served_name).wanted
    assert (live_of(policy), PointerMove.objects.count()) == (second, 2)
    assert placement.engine_for(None) in {engine.url for engine in ready}


def test_a_live_version_that_went_cold_is_loaded_for_the_request_that_names_it(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    version.refresh_from_db()
    LoadedAdapter.objects.update(state=LoadState.UNLOADED)
    for engine in ready:
        engine.adapters.clear()

    url = placement.engine_for(version)

    assert {engine.url: list(engine.adapters) for engine in ready}[url] == [version.served_name]
    assert sum(len(engine.adapters) for engine in ready) == 1  # where its policy prefers to be
    assert pick_engine(version.served_name) == url
    assert DesiredAdapter.objects.get(served_name=version.served_name).wanted


def test_what_an_engine_refused_is_not_tried_again_by_every_request(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    version.refresh_from_db()
    LoadedAdapter.objects.update(state=LoadState.FAILED)
    asked = [len(engine.requests) for engine in ready]

    with pytest.raises(AdapterMissing):
        placement.engine_for(version)
    assert [len(engine.requests) for engine in ready] == asked


@pytest.mark.django_db(transaction=True)
def test_many_requests_for_a_cold_policy_load_it_once(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    version.refresh_from_db()
    LoadedAdapter.objects.update(state=LoadState.UNLOADED)
    for engine in ready:
        engine.adapters.clear()
        engine.requests.clear()
        engine.load_s = 0.2
    found: list[str] = []

    def ask() -> None:
        with tenant_scope(policy.tenant_id):
            found.append(placement.engine_for(version))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert [len(found), len(set(found))] == [4, 1]
    # one probe: the adapter, the base, the base again
    assert sum(len(engine.requests) for engine in ready) == 3


def test_another_tenants_policy_looks_as_if_it_did_not_exist(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    with system_scope("test"):
        other = Tenant.objects.create(slug=f"o-{uuid.uuid4().hex[:8]}", name="Other")
    with tenant_scope(other.pk):
        with pytest.raises(NotFound):
            services.rollback(tenant=other.slug, policy="default", number=0)
        with pytest.raises(NotFound):
            services.move_pointer(policy_id=policy.pk, to_version_id=None, actor="x", reason="y")
        with pytest.raises(NotFound):
            publishing.publish(version.pk)
    assert live_of(policy) == version


def test_going_back_and_forth_is_on_record(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)

    done = services.rollback(tenant=tenant.slug, policy="default", number=1, actor="user:7", reason="worse")

    assert (done.before, done.now, live_of(policy)) == (2, 1, first)
    move = PointerMove.objects.order_by("-created_at")[0]
    assert (move.from_version, move.to_version, move.actor, move.reason) == (second, first, "user:7", "worse")
    audit = AuditEntry.objects.filter(action="policy.point").order_by("-created_at")[0]
    assert (audit.actor, audit.detail) == ("user:7", {"from": 2, "to": 1, "reason": "worse"})
    services.rollback(tenant=tenant.slug, policy="default", number=1)
    assert PointerMove.objects.count() == 3


def test_only_ready_versions_of_the_policy_become_live(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    created = make_version()
    other = services.create_policy(tenant=tenant, name="other")

    with pytest.raises(Conflict, match="is created, not ready"):
        services.move_pointer(policy_id=policy.pk, to_version_id=created.pk, actor="x", reason="y")
    publishing.publish(created.pk)
    with pytest.raises(NotFound, match="other has no such version"):
        services.move_pointer(policy_id=other.pk, to_version_id=created.pk, actor="x", reason="y")
    assert Policy.objects.get(pk=other.pk).live is None


def test_the_pointers_own_statement_refuses_what_is_not_ready(
    ready: list[FakeEngine], policy: Policy, make_version: MakeVersion
) -> None:
    created = make_version()

    with pytest.raises(Conflict):
        services.point(policy=policy, version=created, actor="x", reason="y")
    assert (Policy.objects.get(pk=policy.pk).live, PointerMove.objects.count()) == (None, 0)


def test_going_back_waits_until_the_old_version_answers_again(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)
    for engine in ready:  # restarted: only what is wanted comes back by itself
        engine.boot += 1
        engine.adapters.clear()
    reconcile()
    assert [list(engine.adapters) for engine in ready] == [[second.served_name]] * 2

    services.rollback(tenant=tenant.slug, policy="default", number=1)

    assert [sorted(engine.adapters) for engine in ready] == [
        sorted([first.served_name, second.served_name])
    ] * 2
    assert live_of(policy) == first


def test_going_back_to_what_no_engine_can_serve_moves_nothing(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    first = make_version()
    publishing.publish(first.pk)
    second = make_version(first, seed=1)
    publishing.publish(second.pk)
    for engine in ready:
        engine.stop()
    reconcile()

    with pytest.raises(EngineUnavailable):
        services.rollback(tenant=tenant.slug, policy="default", number=1)
    assert live_of(policy) == second
    services.rollback(tenant=tenant.slug, policy="default", number=0)  # the base needs no proof
    assert live_of(policy) is None


def test_who_asks_for_a_version_that_is_not_there_is_told_which_are_ready(
    tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    versions = [make_version() for _ in range(7)]
    AdapterVersion.objects.exclude(pk=versions[5].pk).update(state=VersionState.READY)

    def told() -> str:
        with pytest.raises(CommandError) as refusal:
            call_command("rollback", "default", "99", tenant=tenant.slug)
        return str(refusal.value)

    assert told() == "default has no version 99; ready are 7, 5, 4, 3, 2 … and the bare base, 0"
    AdapterVersion.objects.exclude(number__in=[1, 3]).update(state=VersionState.REFUSED)
    assert told() == "default has no version 99; ready are 3, 1 and the bare base, 0"
    AdapterVersion.objects.update(state=VersionState.REFUSED)
    assert told() == "default has no version 99; only the bare base, 0, is ready"


def test_the_command_goes_back_and_says_so(
    ready: list[FakeEngine], tenant: Tenant, policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    publishing.publish(version.pk)
    out = StringIO()

    call_command("rollback", "default", "0", tenant=tenant.slug, json=True, stdout=out)

    assert json.loads(out.getvalue()) == {"tenant": tenant.slug, "policy": "default", "before": 1, "now": 0}
    assert live_of(policy) is None
    out = StringIO()
    call_command("rollback", "default", "1", tenant=tenant.slug, stdout=out)
    assert out.getvalue() == f"{tenant.slug}/default answers from version 1 (before: 0)\n"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("nobody", "default", "0"), "there is no tenant nobody"),
        (("", "other", "0"), "has no policy other"),
        (("", "default", "7"), "default has no version 7"),
        (("", "default", "-1"), "numbered from 0"),
    ],
)
def test_the_command_says_what_is_wrong(
    tenant: Tenant, policy: Policy, asked: tuple[str, str, str], why: str
) -> None:
    slug, name, number = asked
    with pytest.raises(CommandError, match=why):
        call_command("rollback", f"--tenant={slug or tenant.slug}", "--", name, number)
