"""Every page of rows that the web has is found in the URLconf."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection

from config.urls_api import VIEWSETS
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill
from tests.load._every_page import LEFT_OUT, answered, every_page
from tests.load._grown import Shape, first_rows, newest_ids


@pytest.fixture
def acme(db: None) -> Rows:
    return fill("acme", text="in plain words")


def known(rows: Rows, turns: int) -> dict[str, Any]:
    first = first_rows(rows.tenant.pk)
    with system_scope("grown rows"), connection.cursor() as cursor:
        ids = newest_ids(cursor.execute, turns, Shape(), origin=rows.turn.created_at.isoformat())
    return ids | {
        "policy": first["adapters.Policy"],
        "endpoint": first["alerts.WebhookEndpoint"],
        "key": first["keys.ApiKey"],
        "membership": first["accounts.Membership"],
    }


def test_every_address_of_the_dashboard_is_measured_or_said_to_show_no_rows(acme: Rows) -> None:
    pages = every_page("acme", known(acme, 100))
    found = {page.name for page in pages if page.face == "dashboard"}
    assert found | set(LEFT_OUT) == answered()
    assert not found & set(LEFT_OUT)


def test_every_list_of_the_api_and_of_the_console_is_measured(acme: Rows) -> None:
    pages = every_page("acme", known(acme, 100))
    assert {page.path for page in pages if page.face == "api"} == {
        *(f"/api/{name}" for name in VIEWSETS),
        f"/api/policies/{acme.policy.pk}/configs",
    }
    lists = [page for page in pages if page.face == "console"]
    assert len(lists) == len(admin.site._registry) + 1
