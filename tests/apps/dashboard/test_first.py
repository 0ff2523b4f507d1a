"""The page of a tenant that nobody has asked anything yet."""

import re
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client

from apps.accounts.models import Membership, Role, User
from apps.conversations.models import Turn, TurnState
from apps.dashboard.first import first_request
from apps.dashboard.places import Place
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser, member, text_of
from tests.apps.dashboard.test_entrance import sign_up

pytestmark = pytest.mark.usefixtures("db", "valkey")


def piece(rows: Rows, user: User) -> tuple[str, bool]:
    """Return what the page of this person shows of the first request, and whether that is the end of it."""
    with tenant_scope(rows.tenant.pk):
        place = Place(Membership.objects.select_related("tenant", "user").get(user=user), [])
        seen: dict[str, Any] = first_request(place)
        return render_to_string("dashboard/_landed.html", {"place": place, **seen}), seen["asked_before"]


def only(rows: Rows, state: TurnState, error: str = "") -> Turn:
    """Leave the tenant one turn, in that state."""
    with system_scope("tests"):
        Turn.objects.filter(tenant=rows.tenant, parent=None).update(state=state, error=error)
        return Turn.objects.get(tenant=rows.tenant, parent=None)


def test_a_new_tenants_page_waits_and_a_key_is_one_click_away() -> None:
    client = browser_of("eve@example.org")
    page = client.get("/t/eve/").content.decode()
    assert 'hx-sse:connect="/t/eve/first/events"' in page
    assert "Waiting for the first request" in page
    made = client.post("/t/eve/keys", {"name": "first key", "scopes": "chat"}).content.decode()
    secret = re.search(r'class="secret">(at-[^<]+)<', made)
    assert secret is not None
    assert made.count(secret[1]) == 4  # itself, its copy, in curl, in Python
    assert 'hx-sse:connect="/t/eve/first/events"' in made
    assert secret[1] not in client.get("/t/eve/keys").content.decode()


def browser_of(email: str) -> Any:

    client = Client()
    sign_up(client, email)
    return client


def test_it_turns_over_when_the_first_request_lands(acme: Rows) -> None:
    only(acme, TurnState.PENDING)
    html, over = piece(acme, acme.user)
    assert ("being answered" in html, over) == (True, False)
    turn = only(acme, TurnState.COMPLETE)
    html, over = piece(acme, acme.user)
    assert ("It landed." in html, over) == (True, True)
    assert f'href="/t/acme/sessions/{turn.session_id}"' in html
    assert "hx-sse:connect" not in browser(acme.user).get("/t/acme/").content.decode()
    assert "Make a key" in text_of(browser(acme.user), "/t/acme/")


def test_who_may_not_read_it_hears_only_that_it_landed(acme: Rows) -> None:
    for role in (Role.VIEWER, Role.MEMBER):
        user = member(acme.tenant, role)
        only(acme, TurnState.FAILED, error="the engine said <something>")
        html, over = piece(acme, user)
        assert over
        assert "ended without a whole reply" in html
        assert "something" not in html
        assert "/sessions/" not in html
    html, _ = piece(acme, acme.user)
    assert "the engine said &lt;something&gt;" in html
