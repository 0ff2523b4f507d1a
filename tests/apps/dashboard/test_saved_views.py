"""Saved views: whose they are, how many there may be,
and what becomes of one whose filters mean nothing any more."""

import datetime as dt
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from apps.accounts.models import EndUser, Role, User
from apps.adapters.models import Policy
from apps.conversations.models import Feedback, Session, TurnKind
from apps.dashboard.models import LONGEST_NAME, MOST, SavedView
from apps.dashboard.saved import services
from apps.dashboard.saved.services import Keeper, change_view, delete_view, save_view
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.erasure.work import Step, _forget_unheard, erase
from apps.governance.models import Subject
from apps.learning.models import Sample
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, member, text_of
from tests.locks import wait_for_a_lock

HERE = "/t/acme/sessions"


def keeper(rows: Rows, user: User, *, manages: bool) -> Keeper:
    return Keeper(rows.tenant.pk, user.pk, f"user:{user.pk}", manages=manages)


def names(rows: Rows) -> list[str]:
    with tenant_scope(rows.tenant.pk):
        return list(SavedView.objects.order_by("created_at", "id").values_list("name", flat=True))


def save(client: Client, name: str, *, shared: bool = False, **filters: str) -> Any:
    return client.post(f"{HERE}?{urlencode(filters)}", {"name": name} | ({"shared": "on"} if shared else {}))


@pytest.fixture
def empty(acme: Rows) -> Rows:
    """Return a tenant where nobody has saved a view."""
    with tenant_scope(acme.tenant.pk):
        SavedView.objects.all().delete()
    return acme


def test_filters_are_saved_opened_renamed_and_deleted(empty: Rows) -> None:
    client = browser(empty.user)
    done = save(client, "  unhappy   today ", judged="bad", within="1d", kind="")
    with tenant_scope(empty.tenant.pk):
        view = SavedView.objects.get()
    assert (done.status_code, done["Location"]) == (302, f"{HERE}?view={view.pk}")
    assert (view.name, view.filters, view.shared, view.place) == (
        "unhappy today",
        {"judged": "bad", "within": "1d"},
        False,
        1,
    )
    page = client.get(done["Location"]).content.decode()
    assert f'<a href="?view={view.pk}" aria-current="true"><bdi>unhappy today</bdi></a>' in page
    assert '<option value="bad" selected>' in page
    assert '<option value="1d" selected>' in page
    assert "Save to" not in page
    other = client.get(f"{HERE}?view={view.pk}&policy=&kind=live&judged=bad&within=&person=").content.decode()
    assert "Save to <bdi>unhappy today</bdi>" in other
    assert "Save as another view" in other
    at = f"/t/acme/views/{view.pk}"
    assert client.post(at, {"wish": "filters", "kind": "live", "judged": "bad"}).status_code == 302
    assert (
        client.post(at, {"wish": "change", "name": "unhappy", "shares": "1", "shared": "on"}).status_code
        == 302
    )
    with tenant_scope(empty.tenant.pk):
        view.refresh_from_db()
        assert (view.name, view.filters, view.shared) == ("unhappy", {"kind": "live", "judged": "bad"}, True)
    assert client.post(at, {"wish": "delete"})["Location"] == HERE
    assert names(empty) == []
    with tenant_scope(empty.tenant.pk):
        assert list(
            AuditEntry.objects.filter(action__startswith="view.")
            .order_by("created_at")
            .values_list("action", flat=True)
        ) == [
            "view.share",
            "view.delete",
        ]


def test_a_view_shows_what_its_filters_say(acme: Rows) -> None:
    with system_scope("test rows"):
        quiet = Session.objects.create(
            tenant=acme.tenant, user=acme.user, policy=acme.policy, kind=TurnKind.LIVE
        )
        Session.objects.filter(pk=quiet.pk).update(created_at=timezone.now() - dt.timedelta(days=3))
        other = Policy.objects.create(tenant=acme.tenant, name="other", base_model="tiny")
    client = browser(acme.user)

    def listed(**filters: str) -> set[str]:
        page = client.get(f"{HERE}?{urlencode(filters)}").content.decode()
        return set(re.findall(r"/sessions/([0-9a-f-]{36})", page))

    busy = str(acme.session.pk)
    assert listed() == {busy, str(quiet.pk)}
    assert listed(within="1d") == {busy}
    assert listed(within="7d") == {busy, str(quiet.pk)}
    assert listed(judged="bad") == {busy}
    assert listed(judged="good") == set()
    assert listed(person="end-acme") == {busy}
    assert listed(policy=str(other.pk)) == set()
    assert listed(kind="shadow") == set()
    with tenant_scope(acme.tenant.pk):  # a thumb counts as what a judge said does
        Sample.objects.update(reward=None)
        assert listed(judged="bad") == {busy}
        Feedback.objects.update(score=1)
    assert (listed(judged="bad"), listed(judged="good")) == (set(), {busy})


def test_a_members_view_is_nowhere_for_anybody_else(empty: Rows) -> None:
    somebody, other = member(empty.tenant, Role.MEMBER), fill("globex")
    save(browser(somebody), "mine", kind="live")
    with system_scope("look"):
        view = SavedView.objects.get(tenant=empty.tenant)
        foreign = SavedView.objects.get(tenant=other.tenant)
    owner = browser(empty.user)
    assert "mine" not in text_of(owner, HERE)
    for nowhere in (view.pk, foreign.pk, uuid.uuid4(), "x"):
        assert owner.get(f"{HERE}?view={nowhere}").status_code == 404
        if nowhere != "x":
            for wish in ("change", "filters", "delete"):
                asked = {"wish": wish, "name": "taken over", "kind": "live"}
                assert owner.post(f"/t/acme/views/{nowhere}", asked).status_code == 404
    assert names(empty) == ["mine"]
    assert browser(somebody).post(f"/t/acme/views/{view.pk}", {"wish": "x"}).status_code == 404
    assert browser(member(empty.tenant, Role.VIEWER)).post(f"/t/acme/views/{view.pk}").status_code == 403


def test_a_shared_view_is_everybodys_to_open_and_the_managers_to_change(empty: Rows) -> None:
    somebody, admin = member(empty.tenant, Role.MEMBER), member(empty.tenant, Role.ADMIN)
    save(browser(empty.user), "ours", shared=True, kind="live")
    with tenant_scope(empty.tenant.pk):
        view = SavedView.objects.get()
        member_, manager = (keeper(empty, somebody, manages=False), keeper(empty, admin, manages=True))
        with pytest.raises(Forbidden):
            change_view(keeper=member_, view_id=view.pk, name="theirs")
        with pytest.raises(Forbidden):
            delete_view(keeper=member_, view_id=view.pk)
        with pytest.raises(Forbidden):
            save_view(keeper=member_, name="for all", filters={"kind": "live"}, shared=True)
        own = save_view(keeper=member_, name="own", filters={"kind": "live"})
        with pytest.raises(Forbidden):
            change_view(keeper=member_, view_id=own.pk, shared=True)
        with pytest.raises(Forbidden, match="Only who made"):
            change_view(keeper=manager, view_id=view.pk, shared=False)
        assert change_view(keeper=manager, view_id=view.pk, name="the tenant's").name == "the tenant's"
        with pytest.raises(NotFound):
            change_view(keeper=manager, view_id=own.pk, name="x")
    seen = browser(somebody).get(f"{HERE}?view={view.pk}").content.decode()
    assert 'aria-current="true"><bdi>the tenant&#x27;s</bdi> <span class="whose">shared</span>' in seen
    assert "Change <bdi>the" not in seen
    assert "for everybody who sees sessions" not in seen
    assert names(empty) == ["the tenant's", "own"]


def test_a_view_is_taken_back_by_who_made_it(empty: Rows) -> None:
    with tenant_scope(empty.tenant.pk):
        owner = keeper(empty, empty.user, manages=True)
        view = save_view(keeper=owner, name="ours", filters={"kind": "live"}, shared=True)
        save_view(keeper=owner, name="another", filters={"kind": "live"})
        back = change_view(keeper=owner, view_id=view.pk, shared=False)
        assert (back.shared, back.place) == (False, 2)
        assert AuditEntry.objects.filter(action="view.unshare").count() == 1


@pytest.mark.parametrize(
    ("name", "filters", "field", "words"),
    [
        (" ", {"kind": "live"}, "name", "Give it a name"),
        ("x" * (LONGEST_NAME + 1), {"kind": "live"}, "name", "at most 60 characters"),
        ("a\x00b", {"kind": "live"}, "name", "control characters"),
        ("v", {}, "filters", "at least one filter"),
        ("v", {"kind": ""}, "filters", "at least one filter"),
        ("v", {"kind": "x"}, "filters.kind", "^Kind: this is none of the choices"),
        ("v", {"policy": str(uuid.UUID(int=1))}, "filters.policy", "^Policy: this is none of the choices"),
        ("v", {"mood": "low"}, "filters.mood", "no filter 'mood'"),
        ("v", {"person": "x" * 201}, "filters.person", "at most 200"),
        ("v", {"person": "nobody"}, "filters.person", "No end user of that name"),
    ],
)
def test_what_is_no_view_is_refused_at_its_field(
    empty: Rows, name: str, filters: dict[str, str], field: str, words: str
) -> None:
    with tenant_scope(empty.tenant.pk), pytest.raises(InvalidInput, match=words) as refused:
        save_view(keeper=keeper(empty, empty.user, manages=True), name=name, filters=filters)
    assert refused.value.field == field
    assert names(empty) == []


def test_a_name_is_there_once_whatever_its_case(empty: Rows) -> None:
    somebody = member(empty.tenant, Role.MEMBER)
    with tenant_scope(empty.tenant.pk):
        owner = keeper(empty, empty.user, manages=True)
        mine = save_view(keeper=owner, name="Today", filters={"within": "1d"})
        with pytest.raises(Conflict, match="called 'today' already") as refused:
            save_view(keeper=owner, name="today", filters={"within": "1d"})
        assert refused.value.field == "name"
        assert change_view(keeper=owner, view_id=mine.pk, name="today").name == "today"
        # everybody has names of their own, and so has the tenant
        save_view(keeper=keeper(empty, somebody, manages=False), name="today", filters={"within": "1d"})
        save_view(keeper=owner, name="today", filters={"within": "1d"}, shared=True)
        with pytest.raises(Conflict, match="already"):
            change_view(keeper=owner, view_id=mine.pk, shared=True)
    page = save(browser(empty.user), "TODAY", within="1d").content.decode()
    assert "There is a view called &#x27;TODAY&#x27; already." in page
    assert 'value="TODAY"' in page


@pytest.mark.parametrize("pair", [("\u212a", "k"), ("i", "\u0130")])
def test_a_name_is_compared_as_the_constraint_does(empty: Rows, pair: tuple[str, str]) -> None:
    """The sign of the kelvin is a small k, and no capital of it."""
    with tenant_scope(empty.tenant.pk):
        owner = keeper(empty, empty.user, manages=True)
        save_view(keeper=owner, name=pair[0], filters={"within": "1d"})
        with pytest.raises(Conflict, match="already"):
            save_view(keeper=owner, name=pair[1], filters={"within": "1d"})
        assert SavedView.objects.count() == 1


def test_views_are_few_and_a_deleted_one_makes_room(empty: Rows) -> None:
    with tenant_scope(empty.tenant.pk):
        owner = keeper(empty, empty.user, manages=True)
        made = [
            save_view(keeper=owner, name=f"view {number}", filters={"kind": "live"}) for number in range(MOST)
        ]
        assert [one.place for one in made] == list(range(1, MOST + 1))
        with pytest.raises(Conflict, match=f"You have {MOST} views already") as refused:
            save_view(keeper=owner, name="one more", filters={"kind": "live"})
        assert (refused.value.field, refused.value.code) == ("name", "too_many")
        shared = save_view(keeper=owner, name="shared", filters={"kind": "live"}, shared=True)
        with pytest.raises(Conflict):
            change_view(keeper=owner, view_id=shared.pk, shared=False)
        delete_view(keeper=owner, view_id=made[6].pk)
        assert save_view(keeper=owner, name="one more", filters={"kind": "live"}).place == 7


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"place": MOST + 1}, "view_places_are_few"),
        ({"place": 0}, "view_places_are_few"),
        ({"place": 1}, "view_place_once_per_member"),
        ({"name": "HERE"}, "view_name_once_per_member"),
        ({"name": ""}, "view_has_a_name"),
        ({"filters": {}}, "view_filters_something"),
        ({"name": "Ours", "shared": True}, "view_name_once_among_shared"),
        ({"place": 1, "shared": True}, "view_place_once_among_shared"),
    ],
)
def test_postgres_refuses_it_too(empty: Rows, wrong: dict[str, Any], constraint: str) -> None:
    values: dict[str, Any] = {"user": empty.user, "name": "another", "place": 2, "filters": {"kind": "live"}}
    with tenant_scope(empty.tenant.pk):
        SavedView.objects.create(**values | {"name": "here", "place": 1})
        SavedView.objects.create(**values | {"name": "ours", "place": 1, "shared": True})
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            SavedView.objects.create(**values | wrong)


@pytest.mark.parametrize(
    "stored",
    [
        {"policy": str(uuid.UUID(int=1)), "kind": "live"},
        {"policy": ["not", "a", "word"], "kind": "live", "mood": "low"},
        {"policy": "x" * 100_000, "kind": "live"},
        {"policy": "\x01", "kind": "live"},
    ],
)
def test_a_stored_filter_that_means_nothing_is_left_out_and_said(empty: Rows, stored: dict[str, Any]) -> None:
    with tenant_scope(empty.tenant.pk):
        view = SavedView.objects.create(user=empty.user, name="old", place=1, filters=stored)
    client = browser(empty.user)
    page = client.get(f"{HERE}?view={view.pk}")
    assert page.status_code == 200
    html = page.content.decode()
    assert '<option value="live" selected>' in html
    assert str(empty.session.pk) in html
    lost = isinstance(stored["policy"], str)
    assert ("Policy: what this view asks for is not there any more" in html) == lost
    assert ("Save to <bdi>old</bdi>" in html) == lost


@pytest.mark.parametrize("stored", [[], "kind", 7, {"kind": {"live": 1}}])
def test_what_is_stored_may_be_anything(empty: Rows, stored: Any) -> None:
    with tenant_scope(empty.tenant.pk):
        view = SavedView.objects.create(user=empty.user, name="old", place=1, filters=stored)
    assert browser(empty.user).get(f"{HERE}?view={view.pk}").status_code == 200


def test_a_policy_that_is_gone_leaves_a_view_of_the_rest(empty: Rows) -> None:
    with tenant_scope(empty.tenant.pk):
        short_lived = Policy.objects.create(name="short", base_model="tiny")
        owner = keeper(empty, empty.user, manages=True)
        view = save_view(keeper=owner, name="v", filters={"policy": str(short_lived.pk)})
        short_lived.delete()
    html = browser(empty.user).get(f"{HERE}?view={view.pk}").content.decode()
    assert "Policy: what this view asks for is not there any more" in html
    assert "Save to" not in html  # nothing is left to be saved
    assert str(empty.session.pk) in html


def test_a_view_of_a_person_goes_with_the_person(empty: Rows) -> None:
    somebody = member(empty.tenant, Role.MEMBER)
    with tenant_scope(empty.tenant.pk):
        owner = keeper(empty, empty.user, manages=True)
        save_view(keeper=owner, name="of one", filters={"person": "end-acme", "kind": "live"})
        save_view(keeper=owner, name="of all", filters={"kind": "live"})
        # a member whose sessions that person has no part in does not learn that they exist
        with pytest.raises(InvalidInput, match="No end user"):
            save_view(keeper=keeper(empty, somebody, manages=False), name="p", filters={"person": "end-acme"})
        gone = request_erasure(
            tenant_id=empty.tenant.pk,
            meant=Meant(Subject.END_USER, EndUser.objects.get().pk),
            actor="system:test",
        )
    with tenant_scope(empty.tenant.pk):
        assert erase(erasure_id=gone.pk) == Step.DONE
        gone.refresh_from_db()
    assert names(empty) == ["of all"]
    assert gone.deleted["savedview"] == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_are_saved_at_once_the_second_finds_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    acme = fill("acme")
    owner = keeper(acme, acme.user, manages=True)
    with tenant_scope(acme.tenant.pk):
        SavedView.objects.all().delete()
    real = services._beside
    places: dict[str, int] = {}

    def save_another(name: str) -> None:
        try:
            with tenant_scope(acme.tenant.pk):
                places[name] = save_view(keeper=owner, name=name, filters={"kind": "live"}).place
        finally:
            connection.close()

    second = threading.Thread(target=save_another, args=("two",))

    def beside(user_id: uuid.UUID, *, shared: bool) -> QuerySet[SavedView]:
        if second.ident is None:
            second.start()
            wait_for_a_lock()
        return real(user_id, shared=shared)

    monkeypatch.setattr(services, "_beside", beside)
    with tenant_scope(acme.tenant.pk):
        places["one"] = save_view(keeper=owner, name="one", filters={"kind": "live"}).place
    second.join()
    assert places == {"one": 1, "two": 2}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [None, {"filters": {"person": "passing"}}, {"name": "another"}])
def test_a_person_does_not_go_while_a_view_of_them_is_saved(
    change: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that comes in between waits for the view, and takes it along."""
    acme = fill("acme")
    owner = keeper(acme, acme.user, manages=True)
    about: dict[str, Any] = {"filters": {"person": "passing"}}
    with tenant_scope(acme.tenant.pk):
        SavedView.objects.all().delete()
        EndUser.objects.create(tenant=acme.tenant, external_id="passing")
        before = {"filters": {"kind": "live"}} if change == about else about
        made = None if change is None else save_view(keeper=owner, name="one", **before)
    real, ends = services._beside, []

    def beside(user_id: uuid.UUID, *, shared: bool) -> QuerySet[SavedView]:
        deletion = threading.Thread(target=lambda: ends.append(_forget(acme, "passing")))
        deletion.start()
        deletion.join()
        return real(user_id, shared=shared)

    monkeypatch.setattr(services, "_beside", beside)
    with tenant_scope(acme.tenant.pk):
        if made is None:
            save_view(keeper=owner, name="one", **about)
        else:
            change_view(keeper=owner, view_id=made.pk, **(change or {}))
    assert ends == ["waits"]
    assert names(acme) == [(change or {}).get("name", "one")]
    assert _forget(acme, "passing") == {"accounts.EndUser": 1, "dashboard.SavedView": 1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["save", "change"])
@pytest.mark.parametrize("asks", ["page", "rest"])
def test_a_person_who_goes_at_that_moment_is_an_error_in_the_callers_format(asks: str, act: str) -> None:
    """A view that is saved while a deletion is about to commit waits for it,
    and then hears that nobody is there."""
    acme = fill("acme")
    about, words = {"person": "passing"}, "No end user of that name has written yet."
    with tenant_scope(acme.tenant.pk):
        SavedView.objects.all().delete()
        EndUser.objects.create(tenant=acme.tenant, external_id="passing")
        owner = keeper(acme, acme.user, manages=True)
        kept = None if act == "save" else save_view(keeper=owner, name="one", filters={"kind": "live"}).pk
    client = browser(acme.user)
    with _goes_meanwhile(acme, "passing"):
        if asks == "page":
            answer = (
                save(client, "one", **about)
                if kept is None
                else client.post(f"/t/acme/views/{kept}", {"wish": "filters", **about}, follow=True)
            )
        else:
            given = json.dumps({"filters": about} | ({"name": "one"} if kept is None else {}))
            asked = client.post if kept is None else client.patch
            at = "/api/views" if kept is None else f"/api/views/{kept}"
            answer = asked(at, given, content_type="application/json")
    if asks == "page":
        assert answer.status_code == 200
        assert words in answer.content.decode()
    else:
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"field": "filters.person", "detail": words}]
    with tenant_scope(acme.tenant.pk):
        assert [view.filters for view in SavedView.objects.all()] == (
            [] if kept is None else [{"kind": "live"}]
        )
        assert not EndUser.objects.filter(external_id="passing").exists()


@contextmanager
def _goes_meanwhile(rows: Rows, external_id: str) -> Iterator[None]:
    """Let a deletion of an end user be done and commit only once somebody waits for it."""
    done = threading.Event()

    def go() -> None:
        try:
            with tenant_scope(rows.tenant.pk), transaction.atomic():
                _forget_unheard(EndUser.objects.filter(external_id=external_id))
                done.set()
                wait_for_a_lock()
        finally:
            connection.close()

    deletion = threading.Thread(target=go)
    deletion.start()
    assert done.wait(30)
    try:
        yield
    finally:
        deletion.join()


def _forget(rows: Rows, external_id: str) -> object:
    """Delete an end user as a deletion does, on a connection of its own;
    "waits" where somebody holds what goes."""
    try:
        with tenant_scope(rows.tenant.pk), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
            return _forget_unheard(EndUser.objects.filter(external_id=external_id))
    except OperationalError:
        return "waits"
    finally:
        if threading.current_thread() is not threading.main_thread():
            connection.close()


def test_hostile_names_stay_text(acme: Rows) -> None:
    page = browser(acme.user).get(HERE).content.decode()
    assert "<bdi>mine &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page


def test_where_there_is_none_the_page_says_what_they_are_for(empty: Rows) -> None:
    client = browser(empty.user)
    assert "can be saved here under a name" in text_of(client, HERE)
    assert "Save as a view" not in text_of(client, HERE)
    assert "Save as a view" in text_of(client, f"{HERE}?kind=live")
