"""The Data page in a real browser: an archive asked for, watched, fetched and opened;
what is deleted only by its name."""

import datetime as dt
import hashlib
import io
import json
import threading
import uuid
import zipfile
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Browser, expect

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn
from apps.governance import retention
from apps.governance.erasure import work
from apps.governance.export import jobs
from apps.governance.export.archive import Progress
from apps.governance.models import Erasure, ErasureState, Export, ExportState, Subject
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.browser.looking import Looker, looking
from tests.browser.rows import lived_in

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
PATIENCE_S = 60


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    """Return a tenant in use in which nothing is under way."""
    del transactional_db
    rows = lived_in(turns=80)
    with tenant_scope(rows.tenant.pk):
        Export.objects.exclude(state=ExportState.READY).delete()
        Erasure.objects.filter(state=ErasureState.OPEN).delete()
    return rows


class Halfway:
    """Lets an archive be written up to its middle, and on once it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.go_on = threading.Event(), threading.Event()
        told = jobs._Keeper.__call__

        def slowly(keeper: Any, progress: Progress) -> None:
            stops = progress.done * 2 > progress.total and not self.there.is_set()
            if stops:
                keeper._due = 0.0  # now, not once a second
            told(keeper, progress)
            if stops:
                self.there.set()
                assert self.go_on.wait(PATIENCE_S)

        monkeypatch.setattr(jobs._Keeper, "__call__", slowly)


def written(export: Export) -> None:
    """Do as a worker does with an export."""
    with tenant_scope(export.tenant_id):
        jobs.write(export_id=export.pk)
    connection.close()


def test_an_archive_is_asked_for_watched_fetched_and_opened(
    acme: Rows, web: str, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway = Halfway(monkeypatch)
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto("/t/acme/data")
        page.get_by_role("button", name="Make an archive").click()
        newest = page.get_by_role("group", name="Archives").locator("tbody tr").first
        expect(newest).to_contain_text("queued")
        with tenant_scope(acme.tenant.pk):
            export = Export.objects.get(state=ExportState.QUEUED)
        worker = threading.Thread(target=written, args=(export,))
        worker.start()
        assert halfway.there.wait(PATIENCE_S)
        bar = page.get_by_role("progressbar", name="Rows written")
        bar.wait_for()  # the page asked by itself
        assert 0 < int(bar.get_attribute("value") or 0) < int(bar.get_attribute("max") or 0)
        eyes.see("data-writing", around=bar)
        halfway.go_on.set()
        link = newest.get_by_role("link", name="Download")
        link.wait_for()
        worker.join()
        with page.expect_download() as fetched:
            link.click()
        assert page.url.endswith("/t/acme/data")
        whole = fetched.value.path().read_bytes()
    with tenant_scope(acme.tenant.pk):
        export.refresh_from_db()
        turns = {str(one) for one in Turn.objects.values_list("pk", flat=True)}
        assert AuditEntry.objects.filter(action="export.download", target=f"export:{export.pk}").count() == 1
    assert fetched.value.suggested_filename.startswith("attune-acme-")
    assert hashlib.sha256(whole).hexdigest() == export.sha256
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        assert {"manifest.json", "turns.jsonl", "audit.jsonl"} <= set(archive.namelist())
        lines = archive.read("turns.jsonl").decode().splitlines()
    assert {json.loads(line)["id"] for line in lines} == turns


def open_deletions(rows: Rows) -> list[Erasure]:
    with tenant_scope(rows.tenant.pk):
        return list(Erasure.objects.filter(state=ErasureState.OPEN))


def deleted_by_name(eyes: Looker, rows: Rows, *, wrong: str, name: str, picture: str) -> None:
    """On the page that asks, type a wrong name, then the right one; watch what follows."""
    page = eyes.page
    page.get_by_label(f"Type {name} to confirm").fill(wrong)
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("alert")).to_have_text(f"That is not {name}: nothing was deleted.")
    assert open_deletions(rows) == []
    eyes.see(f"delete-{picture}", around=page.get_by_role("alert"))
    page.get_by_label(f"Type {name} to confirm").fill(name)
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("under way")
    (erasure,) = open_deletions(rows)
    with tenant_scope(rows.tenant.pk):
        assert work.erase(erasure_id=erasure.pk) == work.Step.DONE
    expect(page.get_by_role("heading", level=1)).to_contain_text("deleted")  # the page asked by itself
    eyes.see(f"deletion-{picture}")


def test_a_session_a_person_and_everything_go_by_their_names(acme: Rows, web: str, chromium: Browser) -> None:
    with tenant_scope(acme.tenant.pk):
        Session.objects.exclude(pk=acme.session.pk).update(end_user=EndUser.objects.create(external_id="eve"))
        nameless = Session.objects.filter(external_id=None).order_by("-created_at")[0]
        turns = Turn.objects.count()
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"/t/acme/sessions/{nameless.pk}")
        page.get_by_role("link", name="Delete …").click()
        deleted_by_name(eyes, acme, wrong="first", name=str(nameless.pk)[-8:], picture="session")
        with tenant_scope(acme.tenant.pk):
            assert not Session.objects.filter(pk=nameless.pk).exists()
            assert Turn.objects.count() == turns - 4

        page.goto("/t/acme/data")
        page.get_by_label("An end user, as named in requests").fill("eve")
        page.get_by_role("button", name="Look").first.click()
        deleted_by_name(eyes, acme, wrong="Eve", name="eve", picture="person")
        with tenant_scope(acme.tenant.pk):
            assert not EndUser.objects.filter(external_id="eve").exists()
            assert Turn.objects.count() == 2

        page.goto("/t/acme/data")
        page.get_by_role("button", name="Everything that was said …").click()
        deleted_by_name(eyes, acme, wrong="acme-2", name="acme", picture="everything")
        with tenant_scope(acme.tenant.pk):
            assert Turn.objects.count() == 0
            assert list(Erasure.objects.filter(actor=f"user:{acme.user.pk}", subject_id=None)) != []


def test_fewer_days_ask_first_and_the_data_page_says_what_went(
    acme: Rows, web: str, chromium: Browser
) -> None:
    settings = f"/t/acme/settings/policies/{acme.policy.pk}"
    with tenant_scope(acme.tenant.pk):
        before = timezone.now() - dt.timedelta(days=3)
        going = set(Session.objects.filter(last_turn_at__lt=before).values_list("pk", flat=True))
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(settings)
        page.get_by_label("Days without a turn; empty: kept for good").fill("3")
        page.locator("#retention-retention_days").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Keep sessions of default for 3 days only?")
        eyes.see("settings-retention")
        assert days_of(acme) is None
        page.get_by_role("link", name="Keep it as it is").click()
        assert days_of(acme) is None
        page.get_by_label("Days without a turn; empty: kept for good").fill("3")
        page.locator("#retention-retention_days").press("Enter")
        page.get_by_role("button", name="Delete them and keep 3 days").click()
        said = page.get_by_text(
            f"{len(going)} sessions older than 3 days go at the next sweep, within minutes."
        )
        eyes.see("settings-kept", around=said)
        assert days_of(acme) == 3

        upkeep_runs(acme)
        page.goto("/t/acme/data")
        aged = page.get_by_role("group", name="Gone by age")
        expect(aged.locator("tbody tr").first).to_contain_text(
            f"3 days done {len(going)}", use_inner_text=True
        )
        eyes.see("data-aged", around=aged)
    with tenant_scope(acme.tenant.pk):
        assert not Session.objects.filter(pk__in=going).exists()
        assert Session.objects.exists()


def days_of(rows: Rows) -> int | None:
    with tenant_scope(rows.tenant.pk):
        days: int | None = Policy.objects.get(pk=rows.policy.pk).config.get("retention_days")
        return days


def upkeep_runs(rows: Rows) -> uuid.UUID:
    """Do as the clock and a worker do with what is aged."""
    with tenant_scope(rows.tenant.pk):
        sweep = retention.begin(rows.policy.pk)
        assert sweep is not None
        assert sweep.subject == Subject.AGED
        assert work.erase(erasure_id=sweep.pk) == work.Step.DONE
        return sweep.pk
