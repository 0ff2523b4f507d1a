"""The console's first page: how each loop is, in words, by the bounds that something acts by."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts import mails
from apps.accounts.models import Mail, Tenant
from apps.alerts.models import Alert, Delivery, Severity
from apps.console.home import WELL, at_a_glance
from apps.conversations.models import Turn, TurnState
from apps.engines.models import Engine
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import RunState, TrainingRun
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill, operator


@pytest.fixture
def acme(db: None) -> Rows:
    del db
    return fill("acme", text="in plain words")


def glance() -> dict[str, Any]:
    with system_scope("look"):
        return at_a_glance(RequestFactory().get("/console/"), {})


def test_what_is_well_says_so(acme: Rows) -> None:
    with system_scope("test"):
        Alert.objects.all().delete()
        Delivery.objects.all().delete()
        Judgement.objects.filter(state=JudgementState.FAILED).update(state=JudgementState.PENDING)
    seen = glance()
    assert [
        seen[loop]["health"] for loop in ("serving", "judging", "training", "fleet", "outbox", "alerts")
    ] == [WELL] * 6
    assert [(one["queue"], one["waiting"]) for one in seen["outbox"]["queues"]] == [
        *(("judge", 1), ("ops", 0), ("train", 0))
    ]


def test_what_is_late_failed_or_silent_is_said_with_why(acme: Rows) -> None:
    now = timezone.now()
    with system_scope("test"):
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.FAILED)
        Judgement.objects.filter(turn=acme.turn).update(
            state=JudgementState.PENDING, created_at=now - dt.timedelta(minutes=30)
        )
        Judgement.objects.filter(state=JudgementState.FAILED).delete()
        TrainingRun.objects.filter(pk=acme.run.pk).update(state=RunState.FAILED, reason="no space left")
        Engine.objects.update(seen_at=now - dt.timedelta(seconds=61))
        OutboxMessage.objects.update(available_at=now - dt.timedelta(minutes=20))
        Alert.objects.update(severity=Severity.CRITICAL)
    seen = glance()
    assert {
        loop: seen[loop]["health"].word for loop in ("serving", "training", "fleet", "outbox", "alerts")
    } == dict.fromkeys(("serving", "training", "fleet", "outbox", "alerts"), "failing")
    assert seen["judging"]["health"] == ("slow", "the oldest has waited for 30 minutes")
    assert seen["outbox"]["health"].why == "judge: the oldest has waited for 20 minutes"
    assert seen["fleet"]["health"].why == "none has answered within 60 s: nobody is served"


def test_dead_mails_are_counted_and_those_that_can_be_replayed_asked_for(acme: Rows) -> None:
    del acme
    with system_scope("test"):
        Alert.objects.all().delete()
        Delivery.objects.all().delete()
        for number in range(3):
            row = mails.post(kind="test", to=f"{number}@example.org", subject="a", text="b")
            Mail.objects.filter(pk=row.pk).update(state="dead", sealed="x" if number else "")
    alerts = glance()["alerts"]
    assert (alerts["dead_mails"], alerts["replayable"]) == (3, 2)
    assert alerts["health"] == ("slow", "2 dead mails to replay")


def test_what_a_paused_tenant_leaves_waiting_is_no_fault(acme: Rows) -> None:
    with system_scope("test"):
        OutboxMessage.objects.update(available_at=timezone.now() - dt.timedelta(days=2))
        Tenant.objects.update(paused_at=timezone.now(), pause_reason="asked for")
        waiting = OutboxMessage.objects.filter(queue="judge").count()
    judge = glance()["outbox"]["queues"][0]
    assert (judge["waiting"], judge["paused"], judge["health"]) == (0, waiting, WELL)


def test_what_the_relay_sends_of_a_paused_tenant_is_due(acme: Rows) -> None:
    """Only judging, training and what stands on them wait for the tenant to be resumed."""
    with system_scope("test"):
        Tenant.objects.update(paused_at=timezone.now(), pause_reason="asked for")
        OutboxMessage.objects.create(
            tenant=acme.tenant, task="workers.exports.export", queue="ops", available_at=timezone.now()
        )
    ops = glance()["outbox"]["queues"][1]
    assert (ops["queue"], ops["waiting"], ops["paused"]) == ("ops", 1, 0)


def test_a_lease_that_has_lapsed_is_told_from_one_that_holds(acme: Rows) -> None:
    for seconds, word in ((60, "well"), (-1, "failing")):
        with system_scope("test"):
            until = timezone.now() + dt.timedelta(seconds=seconds)
            TrainingRun.objects.filter(pk=acme.run.pk).update(state=RunState.RUNNING, lease_until=until)
        (lease,) = glance()["leases"]
        assert (lease["row"].pk, lease["health"].word) == (acme.run.pk, word)


def test_panels_lead_to_lists_that_open_and_take_the_same_queries_however_much_there_is(acme: Rows) -> None:
    client = Client()
    client.force_login(operator())
    with CaptureQueriesContext(connection) as few:
        page = client.get("/console/").content.decode()
    links = {part.partition('"')[0] for part in page.partition('class="at-grid"')[2].split('href="')[1:]}
    lists = sorted(link for link in links if "/change/" not in link)
    assert len(lists) >= 10
    for link in lists:
        assert client.get(link).status_code == 200, link
    fill("globex")
    with CaptureQueriesContext(connection) as more:
        client.get("/console/")
    assert len(more) == len(few)
