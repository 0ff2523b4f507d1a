"""Lists by a filter that has no index: a page looks through so many rows, says so,
and the next goes on from there."""

import datetime as dt
import re
from functools import partial
from html import unescape

import pytest
from django.db.models import QuerySet
from django.http import QueryDict
from django.test import RequestFactory
from django.utils import timezone

from apps.conversations.models import Session, TurnKind
from apps.dashboard import sessions as page_of_sessions
from apps.dashboard.lists import Listed, listed, searched
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser

HERE = "/t/acme/sessions"


@pytest.fixture
def eight(acme: Rows) -> list[Session]:
    """Return sessions, newest first; the second to fourth are of one moment, the fifth is a rollout."""
    now = timezone.now()
    with tenant_scope(acme.tenant.pk):
        Session.objects.all().delete()
        for hours in (0, 2, 2, 2, 4, 5, 6, 7):
            kind = TurnKind.ROLLOUT if hours == 4 else TurnKind.LIVE
            one = Session.objects.create(policy=acme.policy, user=acme.user, kind=kind)
            Session.objects.filter(pk=one.pk).update(created_at=now - dt.timedelta(hours=hours))
        return list(Session.objects.order_by("-created_at", "-id"))


def walk(rows: Rows, kind: TurnKind, *, size: int, looked: int) -> list[Listed[Session]]:
    """Return all pages, each asked for by the address that the one before gave."""

    def fitting(some: QuerySet[Session]) -> QuerySet[Session]:
        return some.filter(kind=kind)

    pages, query = [], ""
    with tenant_scope(rows.tenant.pk):
        while len(pages) < 20:
            request = RequestFactory().get("/", QueryDict(query).dict())
            pages.append(searched(request, Session.objects.all(), fitting, size=size, looked=looked))
            query = pages[-1].older.removeprefix("?")
            if not query:
                break
    return pages


@pytest.mark.parametrize("looked", range(2, 10))
@pytest.mark.parametrize("size", [1, 2, 50])
def test_each_row_that_fits_is_on_one_page(acme: Rows, eight: list[Session], size: int, looked: int) -> None:
    pages = walk(acme, TurnKind.LIVE, size=size, looked=looked)
    found = [row.pk for page in pages for row in page.rows]
    assert found == [one.pk for one in eight if one.kind == TurnKind.LIVE]
    assert all(len(page.rows) <= min(size, looked) for page in pages)


def test_a_page_ends_where_enough_was_looked_through(acme: Rows, eight: list[Session]) -> None:
    pages = walk(acme, TurnKind.ROLLOUT, size=50, looked=3)
    assert [(len(page.rows), page.looked) for page in pages] == [(0, 3), (1, 3), (0, 0)]
    # what ends with the last row has nothing older
    pages = walk(acme, TurnKind.ROLLOUT, size=50, looked=4)
    assert [(len(page.rows), page.looked) for page in pages] == [(0, 4), (1, 0)]
    assert [(len(one.rows), one.looked) for one in walk(acme, TurnKind.LIVE, size=50, looked=8)] == [(7, 0)]


@pytest.mark.parametrize(("query", "found"), [("kind=rollout", [0, 1, 0]), ("judged=bad", [0, 0, 0])])
def test_the_sessions_page_says_how_far_it_looked(
    acme: Rows, eight: list[Session], monkeypatch: pytest.MonkeyPatch, query: str, found: list[int]
) -> None:
    monkeypatch.setattr(page_of_sessions, "searched", partial(searched, looked=3))
    client, at, shown = browser(acme.user), f"{HERE}?{query}", []
    while at:
        page = client.get(at).content.decode()
        rows = [one for one in eight if f"/sessions/{one.pk}" in page]
        shown.append(len(rows))
        older = re.search(r'class="older"><a href="([^"]+)">([^<]+)<', page)
        assert ("3 were looked through for this page, and there are older ones." in page) == bool(older)
        assert ("None of these fit." in page) == (bool(older) and not rows)
        assert ("None that fit." in page) == (not older)
        assert older is None or older[2] == "Look through older ones"
        at = HERE + unescape(older[1]) if older else ""
    assert shown == found


def test_what_an_index_answers_is_not_searched(
    acme: Rows, eight: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_sessions, "searched", partial(searched, looked=3))
    page = browser(acme.user).get(f"{HERE}?policy={acme.policy.pk}&within=7d").content.decode()
    assert all(str(one.pk) in page for one in eight)
    assert "looked through" not in page


def test_the_way_to_older_rows_names_one_place_and_keeps_the_rest(acme: Rows, eight: list[Session]) -> None:
    del eight
    with tenant_scope(acme.tenant.pk):
        request = RequestFactory().get("/", {"kind": "live", "after": "somewhere", "before": ""})
        page = listed(request, Session.objects.all(), size=3)
    last = page.rows[-1]
    place = f"{last.created_at.isoformat()}~{last.pk}"
    assert QueryDict(page.older.removeprefix("?")).dict() == {"kind": "live", "before": place}
