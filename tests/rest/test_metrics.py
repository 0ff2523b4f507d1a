"""The overview's figures, the gauges and the pointer's moves through /api: what the pages show, and nobody else's."""

import datetime as dt

import pytest
from django.utils import timezone

from apps.accounts.models import Role
from apps.conversations.models import Turn
from apps.dashboard.metrics import traffic
from apps.learning.drift.models import Crossing
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused


def test_the_figures_are_the_overviews(acme: Rows, owner: Api) -> None:
    fill("globex", turns=5)
    shown = owner.get("metrics?range=1d")
    with tenant_scope(acme.tenant.pk):
        seen, turns = traffic(acme.tenant.pk, "1d"), Turn.objects.count()
    assert (turns, shown["requests"], shown["failed"]) == (2, 2, 0)
    assert (shown["range"], shown["minutes"]) == ("1d", 30)
    assert (shown["prompt_tokens"], shown["reply_tokens"]) == (seen.prompt_tokens, seen.reply_tokens)
    assert shown["first_token_ms"] == {"p50": seen.first_token_ms[0], "p95": seen.first_token_ms[1]}
    assert shown["latency_ms"] == {"p50": seen.latency_ms[0], "p95": seen.latency_ms[1]}
    assert sum(point["requests"] for point in shown["points"]) == 2
    assert [
        (dt.datetime.fromisoformat(point["at"]).timestamp(), point["reply_tokens"])
        for point in shown["points"]
    ] == [(point["t"], point["tokens"]) for point in seen.points]
    assert [(point["reward"], point["samples"]) for point in shown["rewards"]] == [
        (point["reward"], point["n"]) for point in seen.rewards
    ]
    assert [(one["policy"], one["version"]) for one in shown["live"]] == [("default", 2)]


def test_a_week_is_meant_where_nothing_is_said(owner: Api) -> None:
    assert (owner.get("metrics")["range"], owner.get("metrics")["minutes"]) == ("7d", 180)


@pytest.mark.parametrize("query", ["range=2d", "range=", "range=1d&range=7d"])
def test_another_range_is_refused_by_name(owner: Api, query: str) -> None:
    answer = owner.ask("GET", f"metrics?{query}")
    refused(answer, 400, "invalid_input", "range")
    assert "1d, 7d, 30d" in answer.json()["detail"]


def test_every_member_sees_figures_and_nobody_changes_them(acme: Rows) -> None:
    # a viewer's key only reads: it is refused before anybody looks what there is to do
    for role, changing in ((Role.VIEWER, 403), (Role.MEMBER, 405), (Role.OWNER, 405)):
        asking = member(acme.tenant, role)
        for path in ("metrics", "moves", "drift-readings", "drift-crossings"):
            assert asking.ask("GET", path).status_code == 200, path
            assert asking.ask("POST", path, {}).status_code == changing, path


def test_moves_are_listed_with_who_and_why(acme: Rows, owner: Api) -> None:
    owner.ask("POST", f"policies/{acme.policy.pk}/point", {"version": 0, "reason": "too terse"})
    newest, older = owner.get("moves")["results"]
    assert (newest["from_version"], newest["to_version"], newest["reason"]) == (2, 0, "too terse")
    assert newest["actor"].startswith("key:")
    assert (older["from_version"], older["to_version"], older["actor"]) == (1, 2, "system:test")
    assert owner.get(f"moves/{older['id']}") == older
    assert owner.get(f"moves?policy={acme.policy.pk}&page_size=1")["results"] == [newest]
    ahead = (timezone.now() + dt.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert owner.get(f"moves?moved_after={ahead}")["results"] == []
    assert owner.get(f"moves?moved_before={ahead}")["results"] == [newest, older]


def test_a_reading_says_which_measures_are_past_their_bounds(acme: Rows, owner: Api) -> None:
    (reading,) = owner.get(f"drift-readings?gauge=rollout_learner&run={acme.run.pk}")["results"]
    assert (reading["run"], reading["version"]) == (str(acme.run.pk), 2)
    by_name = {one["measure"]: one for one in reading["measures"]}
    assert {name: (one["value"], one["limit"], one["past"]) for name, one in by_name.items()} == {
        "rollout_k3": (0.75, 0.5, True),
        "ess": (0.9, 0.4, False),
    }
    assert (by_name["ess"]["side"], by_name["rollout_k3"]["action"]) == ("under", "pause")
    assert owner.get("drift-readings?gauge=learner_deploy")["results"] == []


def test_open_crossings_are_told_from_those_that_are_over(acme: Rows, owner: Api) -> None:
    (crossing,) = owner.get("drift-crossings?open=false")["results"]
    assert (crossing["measure"], crossing["value"], crossing["bound"]) == ("rollout_k3", 0.75, 0.5)
    assert owner.get("drift-crossings?open=true")["results"] == []
    with tenant_scope(acme.tenant.pk):
        Crossing.objects.update(cleared_at=None, cleared_by="")
    assert [one["id"] for one in owner.get("drift-crossings?open=true")["results"]] == [crossing["id"]]


@pytest.mark.parametrize("value", ["", "1", "True", "yes", "-202281"])
def test_a_flag_is_true_or_false(owner: Api, value: str) -> None:
    refused(owner.ask("GET", f"drift-crossings?open={value}"), 400, "invalid_input", "open")
