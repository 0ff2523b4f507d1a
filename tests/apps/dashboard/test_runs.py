"""What the pages of training runs say in words, and how they are followed while a run is under way."""

import datetime as dt
import json
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.test import AsyncClient, Client
from django.utils import timezone

from apps.accounts.models import Membership, Role, User
from apps.adapters.models import Policy
from apps.dashboard import live
from apps.dashboard.measures import Measure, main_measures, measures
from apps.judging.services import write_rubric
from apps.learning.configuring import configure
from apps.learning.drift.models import Crossing
from apps.learning.models import RunState, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, text_of
from tests.tenants import add_version
from trainer import metrics

CHART = re.compile(r'id="chart-data"[^>]*>(.*?)</script>')


def charted(html: str) -> list[tuple[int, float]]:
    """Return the versions and losses of the charts that are in a piece of a page."""
    return [
        (step["version"], step["loss"])
        for found in CHART.findall(html)
        for step in json.loads(found)["steps"]
    ]


def step(rows: Rows, number: int, loss: float) -> TrainingRun:
    """Let a run have made a version."""
    with tenant_scope(rows.tenant.pk):
        return TrainingRun.objects.create(
            policy=rows.policy,
            state=RunState.SUCCEEDED,
            trigger="clock",
            parent=rows.version,
            version=add_version(rows.policy, number),
            metrics={"loss": loss},
            started_at=timezone.now(),
            finished_at=timezone.now(),
        )


def test_a_run_under_way_says_what_it_took_so_far_and_that_it_has_begun(acme: Rows) -> None:
    client, url = browser(acme.user), f"/t/acme/runs/{acme.run.pk}"
    begun = timezone.now() - dt.timedelta(seconds=40)
    for state, said, unsaid in (
        (RunState.QUEUED, "It has not begun.", "so far"),
        (RunState.RUNNING, " so far", "It has not begun."),
    ):
        with tenant_scope(acme.tenant.pk):
            TrainingRun.objects.filter(pk=acme.run.pk).update(
                state=state,
                config={},
                config_number=None,
                finished_at=None,
                started_at=None if state == RunState.QUEUED else begun,
            )
        page = text_of(client, url)
        assert said in page
        assert unsaid not in page
    found = CHART.search(client.get(url).content.decode())
    assert found is not None
    assert json.loads(found[1])["open"] is True


def test_who_did_something_is_named_on_every_page_that_says_so(acme: Rows) -> None:
    actor = f"user:{acme.user.pk}"
    with tenant_scope(acme.tenant.pk):
        configure(policy_id=acme.policy.pk, actor=actor, config={"lr": 1e-5})
        write_rubric(tenant_id=acme.tenant.pk, policy=acme.policy, text="Be kind.", actor=actor)
        other = step(acme, 3, 0.4)
        TrainingRun.objects.filter(policy=acme.policy).update(trigger=actor)
        assert Crossing.objects.filter(policy=acme.policy).update(cleared_by=actor) == 1
    client = browser(acme.user)
    for page, times in (
        ("runs", 2),
        (f"runs/compare?run={acme.run.pk}&run={other.pk}", 2),
        (f"drift?policy={acme.policy.pk}", 1),
        (f"settings/policies/{acme.policy.pk}", 3),
    ):
        said = client.get(f"/t/acme/{page}").content.decode()
        assert said.count(f'<span title="{actor}">owner@acme.example</span>') == times, page
        assert said.count(actor) == times, page


def test_every_measure_of_the_trainer_has_words() -> None:
    names = {*re.findall(r"`([a-z_0-9]+)`", metrics.__doc__ or ""), "staleness", "seconds", "code"}
    assert len(names) > 30
    seen = {one.name: one.words for one in measures(dict.fromkeys(names, 1.0))}
    assert seen.keys() == names
    assert [name for name, words in seen.items() if words == name] == []


def test_measures_come_with_their_units() -> None:
    found = {"geometric_outside_fraction": 0.125, "tokens": 4096.0, "rollout_k3": 0.0123456, "ess": 0.9,
             "staleness": {"0": 3, "2": 1}, "a_new_one": 0.5, "loss": -1.0}  # fmt: skip
    assert measures(found) == [
        Measure("loss", "Loss", "-1"),
        Measure("rollout_k3", "Engine against learner, k3", "0.012346 nats"),
        Measure("ess", "Effective sample size", "90 %"),
        Measure("geometric_outside_fraction", "Tokens of replies outside the guard's band", "12.5 %"),
        Measure("staleness", "Samples by their staleness in steps", "0: 3, 2: 1"),
        Measure("tokens", "Reply tokens", "4096"),
        Measure("a_new_one", "a_new_one", "0.5"),
    ]
    assert [(one.name, one.said) for one in main_measures(found)] == [
        ("loss", "-1"),
        ("rollout_k3", "0.012346 nats"),
        ("ess", "90 %"),
        ("staleness_mean", "0.5 steps"),
    ]


def test_a_runs_page_has_the_steps_that_led_to_it(acme: Rows) -> None:
    third = step(acme, 3, 0.25)
    client, here = browser(acme.user), "/t/acme/runs"
    assert charted(client.get(f"{here}/{acme.run.pk}").content.decode()) == [(2, 0.5)]
    page = client.get(f"{here}/{third.pk}").content.decode()
    assert charted(page) == [(2, 0.5), (3, 0.25)]
    assert json.loads(CHART.findall(page)[0])["here"] == 3
    assert charted(client.get(here).content.decode()) == [(2, 0.5), (3, 0.25)]
    assert "Loss 0.25" in text_of(client, f"{here}/{third.pk}")


@pytest.mark.django_db(transaction=True)
async def test_the_list_is_followed_and_nothing_comes_twice(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.01)
    client = AsyncClient()
    await client.aforce_login(acme.user)
    path = f"/t/acme/runs/events?policy={acme.policy.pk}"

    async def pieces(**headers: str) -> Any:
        answer: Any = await client.get(path, headers=headers)
        assert answer["Content-Type"] == "text/event-stream"
        return aiter(answer.streaming_content)

    stream = await pieces()
    first = (await anext(stream)).decode()
    assert charted(first) == [(2, 0.5)]
    assert "No run is under way." in first
    second = (await anext(stream)).decode()
    assert charted(second) == []  # the same charts are not sent again
    await _in_thread(lambda: TrainingRun.objects.filter(pk=acme.run.pk).update(reason="so it was"), acme)
    third = (await anext(stream)).decode()
    assert (charted(third), "so it was" in third) == ([], True)
    await _in_thread(lambda: step(acme, 3, 0.25), acme)
    grown = (await anext(stream)).decode()
    assert charted(grown) == [(2, 0.5), (3, 0.25)]  # whole: it replaces what is there
    mark = re.match(r"id: (\w+)\n", grown)
    assert mark is not None
    # who comes back with the last one is sent it no more
    again = await pieces(**{"Last-Event-ID": mark[1]})
    assert (await anext(again)).decode().count('id="chart-data"') == 0


def _taken_out(rows: Rows) -> None:
    Membership.objects.filter(user=rows.user).delete()


def _lowered(rows: Rows) -> None:
    Membership.objects.filter(user=rows.user).update(role=Role.VIEWER)


def _signed_out(rows: Rows) -> None:
    del rows
    Session.objects.all().delete()


def _other_password(rows: Rows) -> None:
    with system_scope("tests"):
        user = User.objects.get(pk=rows.user.pk)
        user.set_password("another one, as long")
        user.save()


def _closed(rows: Rows) -> None:
    with system_scope("tests"):
        User.objects.filter(pk=rows.user.pk).update(is_active=False)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loses", [_taken_out, _lowered, _signed_out, _other_password, _closed])
async def test_who_may_no_more_is_sent_nothing_more(
    acme: Rows, monkeypatch: pytest.MonkeyPatch, loses: Any
) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.01)
    client = AsyncClient()
    await client.aforce_login(acme.user)
    answer: Any = await client.get(f"/t/acme/runs/events?policy={acme.policy.pk}")
    stream = aiter(answer.streaming_content)
    assert charted((await anext(stream)).decode()) == [(2, 0.5)]
    assert "No run is under way." in (await anext(stream)).decode()
    await _in_thread(lambda: loses(acme), acme)
    await _in_thread(lambda: TrainingRun.objects.filter(pk=acme.run.pk).update(reason="a secret"), acme)
    assert [piece async for piece in stream] == []


async def _in_thread(change: Any, rows: Rows) -> None:
    def scoped() -> None:
        with tenant_scope(rows.tenant.pk):
            change()

    await sync_to_async(scoped)()


def test_who_is_signed_out_is_sent_no_page_into_a_page(acme: Rows) -> None:
    for path in (f"runs/{acme.run.pk}/events", "runs/events", "first/events", f"turns/{acme.turn.pk}/so-far"):
        answer = Client().get(f"/t/acme/{path}", headers={"HX-Request": "true"})
        assert (answer.status_code, answer.content) == (401, b"")
        assert Client().get(f"/t/acme/{path}").status_code == 302


def test_the_charts_of_another_tenants_policy_are_nowhere(acme: Rows) -> None:
    other = fill("globex")
    client = browser(acme.user)
    assert client.get(f"/t/acme/runs/events?policy={other.policy.pk}").status_code == 404
    assert client.get("/t/acme/runs/events?policy=x").status_code == 404
    with tenant_scope(acme.tenant.pk):
        idle = Policy.objects.create(name="idle", base_model="tiny")
    page = client.get(f"/t/acme/runs?policy={idle.pk}").content.decode()
    assert charted(page) == []
    assert 'data-charts="steps" hidden' in page  # until its first step
