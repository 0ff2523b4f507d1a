"""The Data page: who may, what it shows, what it takes;
and that no CSV of the dashboard carries a formula."""

import csv
import datetime as dt
import re
import uuid
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.urls import URLPattern
from django.utils import timezone

from apps.accounts.models import EndUser, Membership, Role
from apps.conversations.models import Session, Turn
from apps.dashboard import audit_log
from apps.dashboard.lists import searched
from apps.dashboard.sheets import harmless
from apps.dashboard.urls import _OF_A_TENANT
from apps.governance.erasure import extent, work
from apps.governance.models import Erasure, ErasureState, Export, ExportState, Subject
from apps.learning.models import TrainingRun
from apps.memory.models import Evidence
from kernel import audit
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill, operator
from tests.apps.dashboard.conftest import browser, member, text_of

HERE = "/t/acme/data"


def made(rows: Rows, **values: Any) -> Export:
    with tenant_scope(rows.tenant.pk):
        return Export.objects.create(**{"actor": "user:x", "available_at": timezone.now()} | values)


def lines_of(answer: Any) -> list[list[str]]:
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(b"".join(answer).decode().splitlines()))


@pytest.mark.parametrize("role", [*Role])
def test_only_owners_and_admins_come_in(acme: Rows, role: Role) -> None:
    client = browser(member(acme.tenant, role))
    allowed = role in {Role.OWNER, Role.ADMIN}
    export, session = made(acme), f"?subject=session&id={acme.session.pk}"
    for path in ("", "/progress", "/audit.csv", f"/delete{session}"):
        assert client.get(f"{HERE}{path}").status_code == (200 if allowed else 403), path
    everything = client.get(f"{HERE}/delete?subject=everything")
    assert everything.status_code == (200 if role == Role.OWNER else 403)
    posted = client.post(f"{HERE}/delete", {"subject": "everything", "typed": "acme"})
    assert posted.status_code == (302 if role == Role.OWNER else 403)
    assert client.post(f"{HERE}/exports/{export.pk}/delete").status_code == (302 if allowed else 403)
    assert client.post(f"{HERE}/exports").status_code == (302 if allowed else 403)
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.filter(state=ErasureState.OPEN).count() == (role == Role.OWNER)
        assert Export.objects.filter(state=ExportState.QUEUED).count() == 1
        assert Turn.objects.count() == 2
    # "Everything" is an owner's to see
    if allowed:
        assert ("Everything that was said" in text_of(client, HERE)) == (role == Role.OWNER)


def test_an_export_is_asked_for_followed_and_fetched(acme: Rows) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        Export.objects.all().delete()
    assert "No archive yet." in text_of(client, HERE)
    assert 'hx-trigger="every 2s"' not in client.get(HERE).content.decode()
    client.post(f"{HERE}/exports")
    assert 'hx-trigger="every 2s"' in client.get(HERE).content.decode()
    assert "an export is under way already" in text_of_post(client, f"{HERE}/exports")
    with tenant_scope(acme.tenant.pk):
        Export.objects.update(
            state="running", lease_until=timezone.now(), rows_done=40, rows_total=160, part="turns.jsonl"
        )
    seen = client.get(f"{HERE}/progress").content.decode()
    assert '<progress max="160" value="40" aria-label="Rows written">40</progress>' in seen
    assert "turns.jsonl" in seen
    assert "Make an archive" not in seen
    with tenant_scope(acme.tenant.pk):
        Export.objects.update(
            state="ready",
            lease_until=None,
            size=2_500_000,
            sha256="0" * 64,
            finished_at=timezone.now(),
            expires_at=timezone.now() + dt.timedelta(days=3),
        )
        export = Export.objects.get()
    seen = text_of(client, HERE)
    assert "2.4 MB" in seen
    assert "Download" in seen
    # the row is there and its file is not: the page says so and stays
    answer = client.get(f"{HERE}/exports/{export.pk}/download")
    assert (answer.status_code, answer["Location"]) == (302, HERE)
    assert "not on this machine" in text_of(client, HERE)
    assert client.get(f"{HERE}/exports/{uuid.uuid4()}/download").status_code == 404
    client.post(f"{HERE}/exports/{export.pk}/delete")
    assert "expired" in text_of(client, HERE)


def text_of_post(client: Any, url: str) -> str:
    page = client.post(url, follow=True)
    assert page.status_code == 200
    return str(page.content.decode())


def test_a_failed_export_says_why(acme: Rows) -> None:
    assert "failed no space left" in text_of(browser(acme.user), HERE)


def test_a_session_is_deleted_from_its_page(acme: Rows) -> None:
    client = browser(acme.user)
    page = client.get(f"/t/acme/sessions/{acme.session.pk}").content.decode()
    wish = f"{HERE}/delete?subject=session&amp;id={acme.session.pk}"
    assert wish in page
    seen = text_of(client, wish.replace("&amp;", "&"))
    for words in ("Delete the session first ?", "Sessions 1", "Turns 2", "version 2 (2 samples)"):
        assert words in seen, (words, seen)
    assert "Newest that knows nothing of it version 1" in seen
    assert "the live version is one of them" in seen
    asked = client.post(
        f"{HERE}/delete", {"subject": "session", "id": str(acme.session.pk), "typed": "first"}
    )
    with tenant_scope(acme.tenant.pk):
        erasure = Erasure.objects.get(state=ErasureState.OPEN)
        assert Turn.objects.count() == 2
    assert asked["Location"] == f"{HERE}/deletions/{erasure.pk}"
    seen = text_of(client, asked["Location"])
    assert "under way" in seen
    assert "0 of 2 turns" in seen
    with tenant_scope(acme.tenant.pk):
        work.erase(erasure_id=erasure.pk)
    page = client.get(asked["Location"]).content.decode()
    assert "hx-get" not in page
    assert f'name="version" value="{acme.older.pk}"' in page
    seen = text_of(client, asked["Location"])
    for words in ("deleted", "turns 2", "judgements 2", "Answer from version 1 again"):
        assert words in seen, (words, seen)
    assert "done 2 of 2" in text_of(client, HERE)
    assert client.get(f"/t/acme/sessions/{acme.session.pk}").status_code == 404
    assert client.get(wish.replace("&amp;", "&")).status_code == 404


def test_more_than_is_counted_is_said_to_be_more(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(acme.user)
    whole = text_of(client, f"{HERE}/delete?subject=everything")
    for words in ("Sessions 1 Turns 2 Wishes in memory 1", "version 2 (2 samples)"):
        assert words in whole, words
    assert "learned from the rest" not in whole
    monkeypatch.setattr(extent, "MOST_COUNTED", 1)
    with tenant_scope(acme.tenant.pk):
        Session.objects.create(user=acme.user, policy=acme.policy)
        end_user = EndUser.objects.get().pk
    part = text_of(client, f"{HERE}/delete?subject=everything")
    for words in (
        "Sessions more than 1 Turns more than 1 Wishes in memory 1",
        "version 2 (1 sample)",
        "learned from 1 of the turns, and others may have learned from the rest. The deletion finds them all",
    ):
        assert words in part, words
    person = text_of(client, f"{HERE}/delete?subject=end_user&id={end_user}")
    assert "Sessions 1 Turns more than 1" in person
    with tenant_scope(acme.tenant.pk):
        Session.objects.update(end_user=end_user)
        Turn.objects.filter(pk=acme.turn.pk).delete()
    assert "Sessions more than 1 Turns at least" in text_of(
        client, f"{HERE}/delete?subject=end_user&id={end_user}"
    )


def test_a_person_is_found_by_name(acme: Rows) -> None:
    fill("globex")
    client = browser(acme.user)
    seen = text_of(client, f"{HERE}/delete?subject=end_user&name=end-acme")
    assert "Delete what was said for end-acme ?" in seen
    assert "Wishes in memory 1" in seen
    for name in ("end-globex", "nobody"):
        answer = client.get(f"{HERE}/delete?subject=end_user&name={name}", follow=True)
        assert f"Nobody is called {name}" in answer.content.decode()
    own = text_of(client, f"{HERE}/delete?subject=member&id={acme.user.pk}")
    assert "Delete what was said by owner@acme.example ?" in own
    assert "Turns 0" in own
    with tenant_scope(acme.tenant.pk):
        person = EndUser.objects.get()
    client.post(f"{HERE}/delete", {"subject": "end_user", "id": str(person.pk), "typed": "end-acme"})
    with tenant_scope(acme.tenant.pk):
        erasure = Erasure.objects.get(state=ErasureState.OPEN)
    assert (erasure.subject, erasure.subject_id) == (Subject.END_USER, person.pk)


@pytest.mark.parametrize("typed", ["", "ACME", "acme ", "globex"])
def test_everything_goes_only_by_its_name(acme: Rows, typed: str) -> None:
    client = browser(acme.user)
    answer = client.post(f"{HERE}/delete", {"subject": "everything", "typed": typed})
    assert answer.status_code == 200
    assert "That is not acme: nothing was deleted." in answer.content.decode()
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.filter(state=ErasureState.OPEN).count() == 0
    assert client.post(f"{HERE}/delete", {"subject": "everything", "typed": "acme"}).status_code == 302
    with tenant_scope(acme.tenant.pk):
        assert Erasure.objects.get(state=ErasureState.OPEN).subject == Subject.EVERYTHING


@pytest.mark.parametrize("typed", ["", "FIRST", "first ", "acme", "end-acme"])
def test_a_session_or_a_person_goes_only_by_the_name(acme: Rows, typed: str) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        end_user = EndUser.objects.get().pk
    wishes = [("session", acme.session.pk, "first"), ("end_user", end_user, "end-acme")]
    wishes.append(("member", acme.user.pk, "owner@acme.example"))
    for subject, key, name in wishes:
        if typed == name:
            continue
        wish = {"subject": subject, "id": str(key), "typed": typed}
        page = client.post(f"{HERE}/delete", wish)
        assert page.status_code == 200
        assert f"That is not {name}: nothing was deleted." in page.content.decode()
    with tenant_scope(acme.tenant.pk):
        assert not Erasure.objects.filter(state=ErasureState.OPEN).exists()
        assert Evidence.objects.count() == 1


@pytest.mark.parametrize("name", [None, "x" * 61, "\u202eno way", "two  spaces", " ahead", "a\nline"])
def test_what_cannot_be_typed_goes_by_the_end_of_its_id(acme: Rows, name: str | None) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        Session.objects.filter(pk=acme.session.pk).update(external_id=name)
    end = str(acme.session.pk)[-8:]
    wish = {"subject": "session", "id": str(acme.session.pk)}
    page = client.post(f"{HERE}/delete", wish | {"typed": name or str(acme.session.pk)})
    assert f"That is not {end}: nothing was deleted." in page.content.decode()
    assert client.post(f"{HERE}/delete", wish | {"typed": end}).status_code == 302


def test_nothing_of_another_tenant_is_deleted_or_seen(acme: Rows) -> None:
    other, client = fill("globex"), browser(acme.user)
    with system_scope("look"):
        theirs = Erasure.objects.get(tenant=other.tenant)
        export = Export.objects.get(tenant=other.tenant)
        before = Erasure.objects.count()
    for method in (client.get, client.post):
        for subject, key in (("session", other.session.pk), ("member", other.user.pk), ("session", "x")):
            assert method(f"{HERE}/delete", {"subject": subject, "id": str(key)}).status_code == 404
        for subject in ("tenants", "aged"):
            named = {"subject": subject, "id": str(acme.policy.pk)}
            assert method(f"{HERE}/delete", named).status_code == 404
    assert client.get(f"{HERE}/deletions/{theirs.pk}").status_code == 404
    assert client.get(f"{HERE}/exports/{export.pk}/download").status_code == 404
    assert client.post(f"{HERE}/exports/{export.pk}/delete").status_code == 404
    assert "globex" not in client.get(HERE).content.decode()
    with system_scope("look"):
        assert Erasure.objects.count() == before


def test_the_audit_log_is_filtered(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        for number in range(60):
            audit.record(
                actor="user:7", action="policy.change", target=f"policy:{number}", tenant_id=acme.tenant.pk
            )
    seen = text_of(client, f"{HERE}?who=user:7&did=policy.")
    assert "policy:59" in seen
    assert "test.fill" not in seen
    page = client.get(f"{HERE}?who=user:7&did=policy.").content.decode()
    assert "?who=user%3A7&amp;did=policy.&amp;before=" in page
    assert f'href="{HERE}/audit.csv?who=user%3A7&amp;did=policy.&amp;"' in page
    assert "Nothing that fits." in text_of(client, f"{HERE}?to=nowhere")
    monkeypatch.setattr(audit_log, "searched", partial(searched, looked=50))
    assert "None of these fit." in text_of(client, f"{HERE}?to=nowhere")
    older = client.get(f"{HERE}?did=test.").content.decode()
    assert "50 were looked through for this page" in older
    (onward,) = re.findall(r'class="older"><a href="([^"]+)"', older)
    assert "test.fill" in text_of(client, f"{HERE}{unescape(onward)}")
    monkeypatch.undo()
    today = timezone.now().date()
    assert "policy:59" in text_of(client, f"{HERE}?since={today}&until={today}")
    assert "Nothing that fits." in text_of(client, f"{HERE}?until={today - dt.timedelta(days=1)}")
    for day in ("x", "2026-13-40", "0001-01-01"):
        assert client.get(f"{HERE}?since={day}").status_code == 404
    lines = lines_of(client.get(f"{HERE}/audit.csv?did=policy."))
    assert lines[0] == ["time", "who", "who_named", "did", "to", "to_named", "more"]
    assert len(lines) == 61
    assert lines[1][1:] == ["user:7", "", "policy.change", "policy:59", "", "{}"]


def test_the_audit_log_names_people_keys_and_policies(acme: Rows) -> None:
    left, staff = member(acme.tenant, Role.MEMBER), operator()
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(user=left).delete()
        for actor in (acme.user.pk, left.pk, staff.pk):
            audit.record(
                actor=f"user:{actor}",
                action="a.b",
                target=f"policy:{acme.policy.pk}",
                tenant_id=acme.tenant.pk,
            )
        audit.record(
            actor=f"key:{acme.key.public_id}", action="a.c", target="system:drift", tenant_id=acme.tenant.pk
        )
    client = browser(acme.user)
    seen = text_of(client, f"{HERE}?did=a.")
    for words in (
        "owner@acme.example a.b policy default",
        f"somebody who is no member (…{str(left.pk)[-8:]}) a.b policy default",
        "an operator of the platform a.b policy default",
        "key a key a.c the platform: drift",
    ):
        assert words in seen, words
    assert left.email not in seen
    assert staff.email not in seen
    for query, count in (
        ("who=owner@acme.ex", 1), ("who=OWNER@", 1), (f"who=user:{left.pk}", 1), ("who=key a k", 1),
        ("who=a k", 1), (f"who={left.email}", 0), ("to=policy default", 3), ("to=defau", 3), ("who=owner&to=nobody", 0),
    ):  # fmt: skip
        assert len(lines_of(client.get(f"{HERE}/audit.csv?did=a.&{query}"))) == 1 + count, query
    (_, first, *_) = lines_of(client.get(f"{HERE}/audit.csv?did=a.&who=owner"))
    assert first[1:] == [
        *(
            f"user:{acme.user.pk}",
            "owner@acme.example",
            "a.b",
            f"policy:{acme.policy.pk}",
            "policy default",
            "{}",
        )
    ]
    with tenant_scope(acme.tenant.pk):
        Erasure.objects.update(actor=f"user:{acme.user.pk}")
        erasure = Erasure.objects.all()[0]
    assert "by owner@acme.example" in text_of(client, f"{HERE}/deletions/{erasure.pk}")


def test_who_sees_no_members_is_told_no_names(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        TrainingRun.objects.filter(pk=acme.run.pk).update(trigger=f"user:{acme.user.pk}")
    path = f"/t/acme/runs/{acme.run.pk}"
    assert "Asked for by owner@acme.example" in text_of(browser(acme.user), path)
    assert "Asked for by a member" in text_of(browser(member(acme.tenant, Role.VIEWER)), path)


CSV_ROUTES = ["data/audit.csv", "drift.csv", "overview.csv"]


def test_no_sheet_carries_a_formula(acme: Rows) -> None:
    """Every route that ends in .csv, with formulas in all that people can write."""
    routes = [str(one.pattern) for one in _OF_A_TENANT if isinstance(one, URLPattern)]
    assert sorted(route for route in routes if route.endswith(".csv")) == CSV_ROUTES
    hostile = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1+1")
    with tenant_scope(acme.tenant.pk):
        for word in hostile:
            AuditEntry.objects.create(actor=word, action=word, target=word, tenant_id=acme.tenant.pk)
    client, cells = browser(acme.user), 0
    for route in CSV_ROUTES:
        for line in lines_of(client.get(f"/t/acme/{route}")):
            for cell in line:
                if re.fullmatch(r"-\d+(\.\d+)?", cell):  # a number, such as a reward
                    continue
                assert not cell.strip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d")), cell
                cells += 1
    assert cells > 50
    assert [harmless(word) for word in hostile if word[0] not in "\t\r"] == [
        f"'{word}" for word in hostile if word[0] not in "\t\r"
    ]
    assert [harmless("\t=1"), harmless("\r=1")] == ["'\t'=1", "'\r'=1"]
    assert [harmless(value) for value in (-1.5, 7, None, "plain", "a=b")] == [-1.5, 7, "", "plain", "a=b"]


@pytest.mark.parametrize("between", [";", "\t", "\n", "\r", "; \u00a0"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d"])
def test_no_cell_goes_on_as_a_formula_where_cells_are_separated_otherwise(between: str, sign: str) -> None:
    """A spreadsheet that separates by semicolons reads `x;=1;` as three cells."""
    cell = harmless(f"x{between}{sign}1{between}y")
    assert cell == f"x{between}'{sign}1{between}y"
    parts = re.split("[;\t\r\n]", cell)
    assert not any(part.strip(" \u00a0").startswith(sign) for part in parts)
    assert harmless("a; b, -1") == "a; b, -1"


def test_all_sheets_go_through_one_door() -> None:
    """What writes CSV, or says that it does, is the one module that makes cells harmless."""
    folder = Path(settings.BASE_DIR) / "apps"
    writers = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if "import csv" in (text := path.read_text(encoding="utf-8")) or "text/csv" in text
    }
    assert writers == {"dashboard/sheets.py"}
