"""Saved views and comparisons in a real browser: looked at, by keyboard, and without a script."""

import pytest
from playwright.sync_api import Browser

from apps.adapters.models import AdapterVersion
from apps.dashboard.models import SavedView
from apps.learning.models import TrainingRun
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.browser.conftest import signed_in
from tests.browser.looking import looking
from tests.browser.rows import lived_in

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
CONFIG = {"lr": 1e-4, "batch_size": 16, "method": "combined", "kl_weight": 0.0, "max_staleness": 2}


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    """Return a tenant in use, with views and with runs that were configured in two ways."""
    del transactional_db
    rows = lived_in()
    with tenant_scope(rows.tenant.pk):
        SavedView.objects.all().delete()
        kept = {"judged": "bad", "within": "1d"}
        unhappy = SavedView(user=rows.user, name="unhappy today", place=1, filters=kept)
        for view in (
            unhappy,
            SavedView(user=rows.user, name="this week", place=2, filters={"within": "7d"}),
            SavedView(user=rows.user, name="support desk", place=1, shared=True, filters={"kind": "live"}),
        ):
            view.save()
        runs = list(TrainingRun.objects.exclude(pk=rows.run.pk).order_by("created_at"))
        for number, run in enumerate(runs):
            run.config = CONFIG | ({"lr": 5e-5, "max_staleness": 4} if number > 2 else {})
            run.config_number, run.trainer_s = 1, 30.0 + number
            run.metrics |= {
                "staleness": {"0": 12, "1": number},
                "seconds": {
                    "read": 1.5,
                    "prox": 4.0 + number,
                    "learn": 21.0,
                    "write": 0.4,
                    "total": 27.0 + number,
                },
            }
            run.save()
    return rows


def pages(rows: Rows) -> dict[str, str]:
    here = f"/t/{rows.tenant.slug}"
    with tenant_scope(rows.tenant.pk):
        view = SavedView.objects.get(name="unhappy today").pk
        versions = list(AdapterVersion.objects.order_by("number").values_list("pk", flat=True))
        runs = list(TrainingRun.objects.order_by("created_at").values_list("pk", flat=True))
    return {
        "saved-view": f"{here}/sessions?view={view}&policy=&kind=live&judged=bad&within=7d&person=",
        "compare-versions": f"{here}/adapters/compare?version={versions[3]}&version={versions[6]}",
        "compare-runs": f"{here}/runs/compare?run={runs[2]}&run={runs[5]}",
        "compare-choose": f"{here}/runs/compare?run={runs[2]}",
    }


def test_the_pages_are_whole(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        for name, path in pages(acme).items():
            eyes.page.goto(path)
            eyes.page.wait_for_load_state("networkidle")
            if name == "compare-runs":
                assert eyes.page.locator(".charts canvas").count() == 6
            for fold in eyes.page.locator("main details.fold").all():
                fold.evaluate("one => one.open = true")
            eyes.see(name)


def test_filters_are_saved_and_opened_by_keyboard(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user, width=360) as window:
        page = window.new_page()
        page.goto("/t/acme/sessions")
        page.get_by_label("With").select_option("good")
        page.get_by_role("button", name="Show").press("Enter")
        page.get_by_text("Save as a view").press("Enter")
        page.get_by_label("Name of the view").fill("happy")
        page.get_by_label("Name of the view").press("Enter")
        page.get_by_role("status").get_by_text("Saved.").wait_for()
        current = page.locator('.views a[aria-current="true"]')
        assert current.inner_text() == "happy"
        assert page.get_by_label("With").input_value() == "good"
        page.get_by_text("Change happy").press("Enter")
        page.get_by_role("button", name="Delete").press("Enter")
        page.get_by_role("status").get_by_text("Deleted.").wait_for()
        assert page.get_by_role("link", name="happy", exact=True).count() == 0


def test_two_are_ticked_by_keyboard_where_no_script_runs(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.route("**/*.js", lambda route: route.abort())
        page.goto("/t/acme/adapters")
        for number in (6, 4):
            page.get_by_role("checkbox", name=f"Compare version {number} of default").press("Space")
        page.get_by_role("button", name="Compare the two that are ticked").press("Enter")
        page.get_by_role("heading", name="default: version 4 beside version 6").wait_for()
        page.get_by_label("beside").select_option(label="default 7, ready")
        page.get_by_role("button", name="Compare").press("Enter")
        page.get_by_role("heading", name="default: version 4 beside version 7").wait_for()
