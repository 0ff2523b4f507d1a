"""What lists of the console do with more rows than anybody looks through."""

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.console.admin import paging
from kernel.ids import first_id_at, made_at, uuid7
from kernel.models import AuditEntry
from tests.apps.console.rows import Rows, fill

AUDIT = "/console/kernel/auditentry/"
TURNS = "/console/conversations/turn/"
MORE = "the newest; there are more"


def entry(moment: dt.datetime, target: str) -> None:
    noise = uuid.uuid4().int & ((1 << 62) - 1)
    key = uuid.UUID(int=first_id_at(moment).int | 7 << 76 | 2 << 62 | noise)
    AuditEntry.objects.create(id=key, actor="system:test", action="test.old", target=target)


def shown(client: Client, url: str, **query: str) -> str:
    answer: Any = client.get(url, query)
    assert answer.status_code == 200, (url, query, answer.headers.get("Location"))
    return str(answer.content.decode())


def test_the_time_of_an_id_is_when_it_was_made() -> None:
    before = dt.datetime.now(dt.UTC)
    assert abs(made_at(uuid7()) - before) < dt.timedelta(seconds=5)
    moment = dt.datetime(2024, 3, 5, 12, 30, 15, 250_000, dt.UTC)
    assert made_at(first_id_at(moment)) == moment


@pytest.mark.usefixtures("everything")
def test_a_list_counts_no_further_than_its_pages_go(
    acme: Rows, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST_PAGES", 2)
    for number in range(98):
        AuditEntry.objects.create(actor="system:test", action="test", target=f"row:{number}")
    assert MORE not in shown(console, AUDIT)
    for number in range(98, 108):
        AuditEntry.objects.create(actor="system:test", action="test", target=f"row:{number}")
    first, second = shown(console, AUDIT), shown(console, AUDIT, p="2")
    assert MORE in first
    assert MORE in second
    assert "100 audit entries" in re.sub(r"\s+", " ", first)
    assert "row:107" in first
    assert "row:57" in second
    assert console.get(AUDIT, {"p": "3"}).status_code == 302


@pytest.mark.usefixtures("everything")
def test_older_rows_are_found_by_when_they_were_made(acme: Rows, console: Client) -> None:
    entry(dt.datetime(2024, 2, 29, 23, 59, 59, tzinfo=dt.UTC), "the:leap day")
    entry(dt.datetime(2024, 3, 1, tzinfo=dt.UTC), "the:first of march")
    for word, leap, march in (
        ("2024", True, True),
        ("2024-02", True, False),
        ("2024-02-29", True, False),
        ("2024-03-01", False, True),
        ("2024-12", False, False),
        ("2023", False, False),
    ):
        page = shown(console, AUDIT, made=word)
        assert ("the:leap day" in page, "the:first of march" in page) == (leap, march), word
    everything, february = shown(console, AUDIT), shown(console, AUDIT, made="2024-02")
    assert "?made=2024" in everything
    assert "?made=2024-02" not in everything
    assert "?made=2024-02-29" in february
    assert "?made=2024-02-28" not in february  # before the first row
    assert "?made=2024-01" not in february
    for word in ("x", "2024-13", "2023-02-29", "0001", "9999-01-01"):
        assert console.get(AUDIT, {"made": word}).status_code == 302, word


def test_a_list_that_grows_is_in_order_of_time_and_no_other(acme: Rows, console: Client) -> None:
    for url, table, ordered in (
        (TURNS, "conversations_turn", False),
        ("/console/accounts/tenant/", "accounts_tenant", True),
    ):
        orders = []
        for query in ({}, {"o": "1"}):
            with CaptureQueriesContext(connection) as seen:
                shown(console, url, **query)
            listed = [one["sql"] for one in seen if f'FROM "{table}"' in one["sql"]]
            orders.append([sql.rpartition("ORDER BY")[2] for sql in listed if "ORDER BY" in sql])
        assert orders[0]
        assert (orders[0] != orders[1]) == ordered, url
        assert ("?o=" in shown(console, url)) == ordered, url


def test_an_id_is_searched_for_where_ids_are(acme: Rows, console: Client) -> None:
    other = fill("globex", turns=3)
    page = shown(console, TURNS, q=str(other.turn.pk))
    assert page.count(f"/turn/{other.turn.pk}/change/") > 0
    assert str(acme.turn.pk) not in page
    of_session = shown(console, TURNS, q=f" {other.session.pk} ")
    assert len(set(re.findall(r"/turn/([0-9a-f-]{36})/change/", of_session))) == 3
    with CaptureQueriesContext(connection) as seen:
        shown(console, TURNS, q=str(other.turn.pk))
    assert not any("slug" in one["sql"].rpartition("WHERE")[2] for one in seen if "LIKE" in one["sql"])


def test_feedback_is_filtered_by_its_score(acme: Rows, console: Client) -> None:
    url = "/console/conversations/feedback/"
    found = {score: len(re.findall(r"/feedback/[0-9a-f-]{36}/change/", shown(console, url, score=score)))
             for score in ("-1", "0", "1", "x")}  # fmt: skip
    assert (found["-1"] > 0, found["0"], found["1"], found["x"] > 0) == (True, 0, 0, True)
