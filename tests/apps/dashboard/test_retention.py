"""How long sessions are kept, on the pages: what will go and when, the question before it, and what went."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Role
from apps.adapters.models import Policy
from apps.conversations.models import Session
from apps.governance import retention
from apps.governance.erasure import extent, work
from apps.governance.models import Erasure, ErasureState, Subject
from apps.learning.configuring import configure
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser, member, text_of

SAVED = {"form": "retention", "number": "1"}


def page_of(rows: Rows) -> str:
    return f"/t/acme/settings/policies/{rows.policy.pk}"


def kept(rows: Rows) -> tuple[int, Any]:
    """Return the number of the configuration that holds, and its days."""
    with tenant_scope(rows.tenant.pk):
        policy = Policy.objects.get(pk=rows.policy.pk)
        return policy.config_number, policy.config.get("retention_days")


def old(rows: Rows, days: float) -> None:
    when = timezone.now() - dt.timedelta(days=days)
    with tenant_scope(rows.tenant.pk):
        Session.objects.filter(pk=rows.session.pk).update(last_turn_at=when, created_at=when)


def test_days_are_set_where_nothing_goes_by_it(acme: Rows) -> None:
    client = browser(acme.user)
    assert "Sessions are kept until somebody deletes them." in text_of(client, page_of(acme))
    assert client.post(page_of(acme), {**SAVED, "retention_days": "30"}).status_code == 302
    assert kept(acme) == (2, 30)
    seen = text_of(client, page_of(acme))
    assert "No session will be older than 30 days at the next sweep." in seen
    assert "retention_days the platform&#x27;s → 30" in seen
    assert "30 days" in text_of(client, "/t/acme/settings")
    assert client.post(page_of(acme), {**SAVED, "number": "2", "retention_days": ""}).status_code == 302
    assert kept(acme) == (3, None)
    assert "for good" in text_of(client, "/t/acme/settings")


@pytest.mark.parametrize("days", ["0", "3651", "-1", "1.5", "x"])
def test_what_is_out_of_bounds_stands_at_its_field(acme: Rows, days: str) -> None:
    page = browser(acme.user).post(page_of(acme), {**SAVED, "retention_days": days})
    assert page.status_code == 200
    assert 'id="retention-retention_days-wrong"' in page.content.decode()
    assert kept(acme) == (1, None)


def test_it_is_asked_first_where_something_would_go(acme: Rows) -> None:
    client = browser(acme.user)
    old(acme, 31)
    asked = client.post(page_of(acme), {**SAVED, "retention_days": "30"})
    assert asked.status_code == 200
    page = asked.content.decode()
    for words in ("One session is older than that.", "Turns</dt><dd>2", 'name="retention_days" value="30"'):
        assert words in page, words
    assert "version 2</a> (2 samples)" in page
    assert kept(acme) == (1, None)
    # for other days than those that were seen, it is asked again
    again = client.post(page_of(acme), {**SAVED, "retention_days": "29", "confirmed": "30"})
    assert again.status_code == 200
    assert kept(acme) == (1, None)
    assert client.post(page_of(acme), {**SAVED, "retention_days": "30", "confirmed": "30"}).status_code == 302
    assert kept(acme) == (2, 30)
    assert "1 session older than 30 days goes at the next sweep, within minutes." in text_of(
        client, page_of(acme)
    )
    # longer asks for nothing
    assert client.post(page_of(acme), {**SAVED, "number": "2", "retention_days": "40"}).status_code == 302
    assert kept(acme) == (3, 40)


def test_more_sessions_than_are_counted_are_said_to_be_more(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(acme.tenant.pk):
        for _ in range(2):
            Session.objects.create(policy=acme.policy, user=acme.user)
    count_up_to(2, monkeypatch)
    with tenant_scope(acme.tenant.pk):
        when = timezone.now() - dt.timedelta(days=31)
        assert Session.objects.update(last_turn_at=when, created_at=when) == 3
    page = browser(acme.user).post(page_of(acme), {**SAVED, "retention_days": "30"}).content.decode()
    assert "<p>More than 2 sessions are older than that." in page
    assert "<dt>Sessions that go now</dt><dd>more than 2</dd>" in page
    assert "<dt>Turns</dt><dd>at least 2</dd>" in page  # of the two sessions that were looked at


def count_up_to(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "MOST_COUNTED", most)


def test_more_turns_than_are_counted_are_said_to_be_more(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(acme.user)
    old(acme, 31)
    whole = client.post(page_of(acme), {**SAVED, "retention_days": "30"}).content.decode()
    assert "<dt>Turns</dt><dd>2</dd>" in whole
    assert "(2 samples)" in whole
    assert "learned from the rest" not in whole
    count_up_to(1, monkeypatch)
    with CaptureQueriesContext(connection) as asked:
        part = client.post(page_of(acme), {**SAVED, "retention_days": "30"}).content.decode()
    assert "<p>One session is older than that." in part
    assert "<dt>Turns</dt><dd>more than 1</dd>" in part
    assert "(1 sample)" in part
    assert "learned from 1 of the turns, and others may have learned from the rest" in part
    of_turns = [one["sql"] for one in asked if 'FROM "conversations_turn"' in one["sql"]]
    assert [one.count("LIMIT") for one in of_turns] == [
        2,
        2,
    ]  # of the sessions and of their turns: none reads all


def test_a_way_back_to_fewer_days_asks_too(acme: Rows) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        for days in (30, None):
            configure(policy_id=acme.policy.pk, actor="user:x", config={"retention_days": days})
    old(acme, 31)
    back = {"form": "return", "number": "2"}
    asked = client.post(page_of(acme), back)
    assert "One session is older than that." in asked.content.decode()
    assert '<input type="hidden" name="number" value="2">' in asked.content.decode()
    assert kept(acme) == (3, None)
    assert client.post(page_of(acme), {**back, "confirmed": "30"}).status_code == 302
    assert kept(acme) == (4, 30)


def test_an_old_number_changes_nothing(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        configure(policy_id=acme.policy.pk, actor="user:x", config={"lr": 0.001})
    page = browser(acme.user).post(page_of(acme), {**SAVED, "retention_days": "30"})
    assert "the configuration is number 2 by now, not 1" in page.content.decode()
    assert kept(acme) == (2, None)


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER])
def test_everybody_sees_it_and_only_who_manages_sets_it(acme: Rows, role: Role) -> None:
    client = browser(member(acme.tenant, role))
    with tenant_scope(acme.tenant.pk):
        configure(policy_id=acme.policy.pk, actor="user:x", config={"retention_days": 30})
    old(acme, 31)
    assert "1 session older than 30 days goes at the next sweep" in text_of(client, page_of(acme))
    refused = client.post(page_of(acme), {**SAVED, "number": "2", "retention_days": "", "confirmed": "None"})
    assert refused.status_code == 403
    assert kept(acme) == (2, 30)


def test_what_went_is_on_the_data_page(acme: Rows) -> None:
    client = browser(acme.user)
    assert "Gone by age" not in text_of(client, "/t/acme/data")
    old(acme, 31)
    with tenant_scope(acme.tenant.pk):
        configure(policy_id=acme.policy.pk, actor="user:x", config={"retention_days": 30})
        sweep = retention.begin(acme.policy.pk)
        assert sweep is not None
    assert 'hx-trigger="every 2s"' in client.get("/t/acme/data").content.decode()
    assert "A sweep is under way: how far it is" in text_of(client, page_of(acme))
    with tenant_scope(acme.tenant.pk):
        work.erase(erasure_id=sweep.pk)
    seen = text_of(client, "/t/acme/data")
    assert "default 30 days done 1 2" in seen
    assert "Sessions older than 30 days" not in seen  # not among what people deleted
    page = text_of(client, f"/t/acme/data/deletions/{sweep.pk}")
    for words in (
        "Sessions older than 30 days, of the policy",
        "by the platform: retention",
        "turns 2",
        "version 2",
    ):
        assert words in page, words
    assert "Answer from version 1 again" in page
    assert "No session will be older than 30 days at the next sweep, " in text_of(client, page_of(acme))
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.filter(subject=Subject.AGED, state=ErasureState.DONE).count() == 1
