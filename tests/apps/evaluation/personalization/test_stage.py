"""The operator's part: a tenant for each run, configured as the method says, put to rest and found again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command

from apps.accounts.models import Tenant
from apps.adapters.models import AdapterVersion, Policy
from apps.evaluation.management.commands import demo
from apps.evaluation.personalization import stage as stage_module
from apps.evaluation.personalization.methods import METHODS, find_methods
from apps.evaluation.personalization.run import Subject
from apps.evaluation.personalization.stage import Stage
from apps.evaluation.personalization.switches import refuse_what_is_missing
from apps.evaluation.stack import Stack
from apps.keys.models import ApiKey
from apps.learning.config import resolve
from apps.memory.selectors import setting_of
from kernel.errors import InvalidInput, Unavailable
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import add_somebody, add_version

pytestmark = pytest.mark.django_db(transaction=True)


def _stage() -> Stage:
    who = add_somebody("acme")
    return Stage(api_base="http://127.0.0.1:9/v1", tenant="acme", api_key=who.secret)


def _switches(slug: str) -> tuple[bool, bool]:
    with system_scope("test"):
        tenant = Tenant.objects.get(slug=slug)
    with tenant_scope(tenant.pk):
        found = setting_of(Policy.objects.get(name="default").pk)
        return found.in_prompt, found.shadow


def _look(slug: str) -> tuple[bool, dict[str, object], dict[str, list[str]]]:
    with system_scope("test"):
        tenant = Tenant.objects.get(slug=slug)
    with tenant_scope(tenant.pk):
        policy = Policy.objects.get(name="default")
        keys = {key.name: key.scopes for key in ApiKey.objects.filter(revoked_at=None)}
        return policy.training_enabled, policy.config, keys


async def _opened(stage: Stage, method: str, tenant: str = "") -> Subject:
    subject = await stage.open(method=METHODS[method], tenant=tenant)
    assert subject is not None
    return subject


async def test_each_run_has_a_tenant_of_its_own_with_the_methods_configuration() -> None:
    stage = await sync_to_async(_stage)()
    opd, frozen = await _opened(stage, "opd"), await _opened(stage, "frozen")
    assert opd.tenant != frozen.tenant
    scopes = {"benchmark user": ["chat"], "benchmark examiner": ["chat", "evaluate"]}
    assert await sync_to_async(_look)(opd.tenant) == (True, {"flush_s": 20.0, "method": "opd"}, scopes)
    assert await sync_to_async(_look)(frozen.tenant) == (False, {}, scopes)
    await stage.close(opd)
    await stage.close(frozen)
    assert (await sync_to_async(_look)(opd.tenant))[2] == {}


@pytest.mark.parametrize("name", list(METHODS))
async def test_memory_and_shadow_rollouts_are_switched_as_the_method_says_and_rest_stops_the_latter(
    name: str,
) -> None:
    stage = await sync_to_async(_stage)()
    subject = await _opened(stage, name)
    method = METHODS[name]
    assert await sync_to_async(_switches)(subject.tenant) == (method.memory, method.shadow)
    await stage.rest(subject)
    assert await sync_to_async(_switches)(subject.tenant) == (method.memory, False)
    await stage.close(subject)


async def test_rest_waits_for_the_version_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_module, "LOOK_EVERY_S", 0.05)
    stage = await sync_to_async(_stage)()
    subject = await _opened(stage, "joined")

    def of_version(state: str) -> None:
        with system_scope("test"):
            policy = Policy.objects.get(tenant__slug=subject.tenant)
        with tenant_scope(policy.tenant_id):
            if not AdapterVersion.objects.exists():
                add_version(policy, live=False)
            AdapterVersion.objects.update(state=state, reason="decided")

    await sync_to_async(of_version)("created")
    resting = asyncio.create_task(stage.rest(subject))
    while await sync_to_async(_switches)(subject.tenant) != (True, False):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    assert not resting.done()
    await sync_to_async(of_version)("refused")
    await resting

    monkeypatch.setattr(stage_module, "SETTLES_S", 0.1)
    await sync_to_async(of_version)("created")
    with pytest.raises(Unavailable, match=f"version 1 of {subject.tenant} came to no end"):
        await stage.rest(subject)
    await stage.close(subject)


def test_joined_is_refused_where_shadow_rollouts_are_off(settings: Any) -> None:
    settings.SHADOW_ENABLED = False
    refuse_what_is_missing(find_methods(["memory", "combined"]))
    with pytest.raises(
        InvalidInput, match="joined: shadow rollouts are switched off on this platform"
    ) as refused:
        refuse_what_is_missing(find_methods(["memory", "joined"]))
    assert refused.value.field == "methods"
    settings.SHADOW_ENABLED = True
    refuse_what_is_missing(find_methods(["joined"]))


async def test_a_run_rests_and_is_found_again_by_its_tenant() -> None:
    stage = await sync_to_async(_stage)()
    first = await _opened(stage, "combined")
    await stage.rest(first)
    assert not (await sync_to_async(_look)(first.tenant))[0]
    assert (await stage.account(first))["steps"]["by_state"] == {}
    await stage.close(first)
    again = await _opened(stage, "combined", first.tenant)
    assert again.tenant == first.tenant
    assert (await sync_to_async(_look)(again.tenant))[0]
    await stage.close(again)

    def changes() -> list[tuple[str, object]]:
        with system_scope("test"):
            rows = AuditEntry.objects.filter(action__startswith="policy.", actor="system:benchmark")
            return [(row.action, row.detail.get("enabled")) for row in rows.order_by("created_at")]

    assert await sync_to_async(changes)() == [
        ("policy.create", None),
        ("policy.config", None),
        ("policy.training", False),
        ("policy.training", True),
    ]


async def test_a_tenant_that_is_gone_or_anothers_is_not_found() -> None:
    stage = await sync_to_async(_stage)()
    assert await stage.open(method=METHODS["opd"], tenant="benchmark-opd-00000000") is None
    await sync_to_async(add_somebody)("globex")
    assert await stage.open(method=METHODS["opd"], tenant="globex") is None


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_is_a_configuration_that_the_platform_takes(name: str) -> None:
    method = METHODS[name]
    resolve(method.config)
    assert method.still == (name == "frozen")
    assert bool(method.config) == method.trains


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match="there is no method 'magic'; there are frozen, memory, "
    ) as refused:
        find_methods(["opd", "magic"])
    assert refused.value.field == "methods"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--users", "pirate"], "there is no user 'pirate'"),
        (["--methods", "magic"], "there is no method 'magic'"),
        (["--methods", "opd", "opd"], "--methods names one twice"),
        (["--seeds", "1", "1"], "--seeds names one twice"),
        (["--sessions", "0"], "--sessions lies between 1 and 1000"),
        (["--turns", "9"], "--turns lies between 2 and 8"),
        (["--replies", "0"], "--replies lies between 1 and 20"),
        (["--parallel", "9"], "--parallel lies between 1 and 8"),
        (["--idle", "nan"], "--idle lies between 0 and 3600"),
        (["--minutes", "0"], "--minutes is more than 0"),
        (["--mode", "once", "--parallel", "2"], "--mode once takes --parallel 1"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("evaluate_personalization", *arguments, "--plan")


def test_the_plan_is_shown_and_nothing_else_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command(
        "evaluate_personalization",
        "--methods",
        "frozen",
        "opd",
        "--seeds",
        "1",
        "2",
        "--out",
        f"{tmp_path}/x",
        "--plan",
    )
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == [
        "reference/one-short-sentence/0: to do",
        "frozen/one-short-sentence/1: to do",
        "opd/one-short-sentence/1: to do",
    ]
    assert "requests" in shown[-1] + shown[-2]
    assert list(tmp_path.iterdir()) == []


def test_the_plan_is_json_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command(
        "evaluate_personalization", "--methods", "frozen", "--out", f"{tmp_path}/x", "--plan", "--json"
    )
    shown = json.loads(capsys.readouterr().out)
    assert shown["runs"] == {
        "reference/one-short-sentence/0": "to do",
        "frozen/one-short-sentence/1": "to do",
    }
    assert 0 < shown["seconds"] <= shown["at_most_s"]
    assert (shown["requests"] > 0, shown["out"]) == (True, f"{tmp_path}/x")


@pytest.mark.parametrize(("options", "says"), [([], "begins anew"), (["--talk"], "with --resume goes on")])
def test_a_demo_that_is_interrupted_says_what_the_same_command_does(
    options: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        demo, "handed_stack", lambda: Stack("http://nowhere/v1", "key", "demo", {}, started_here=False)
    )
    monkeypatch.setattr(demo, "run_once", interrupted)
    monkeypatch.setattr(demo, "run_course", interrupted)
    with pytest.raises(SystemExit) as ended:
        call_command("demo", *options)
    assert ended.value.code == 130
    assert f"interrupted: the same command {says}" in capsys.readouterr().out
