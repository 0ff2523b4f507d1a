"""The operators' console in a browser: every list, and a row of each, in every size and theme."""

import pytest
from django.contrib import admin
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from apps.engines.models import Engine
from apps.judging.models import Judgement
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, operator
from tests.browser.acts import acts, rows_that_offer
from tests.browser.looking import looking
from tests.browser.routes import CONSOLE
from tests.browser.rows import lived_in

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    del transactional_db
    return lived_in(turns=40)


def address(route: str, rows: Rows) -> str:
    """Return the address of a page of one of the rows."""
    if route.endswith(("index", "changelist")):
        return reverse(route)
    with system_scope("look"):
        ids = {
            "accounts_tenant": rows.tenant.pk,
            "adapters_policy": rows.policy.pk,
            "adapters_adapterversion": rows.version.pk,
            "conversations_session": rows.session.pk,
            "conversations_turn": rows.turn.pk,
            "judging_judgement": Judgement.objects.get(turn=rows.turn).pk,
            "learning_trainingrun": rows.run.pk,
            "learning_sample": rows.sample.pk,
            "engines_engine": Engine.objects.get().pk,
        }
    return reverse(route, args=[ids[route.removeprefix("admin:").removesuffix("_change")]])


def test_its_lists_and_main_pages_are_whole(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=operator(), console=True) as eyes:
        for route, (name, *_) in CONSOLE.items():
            eyes.at(name, address(route, acme))


def test_every_act_asks_on_a_page_that_is_whole(acme: Rows, web: str, chromium: Browser) -> None:
    del acme
    rows_that_offer()
    with looking(chromium, web, user=operator(), console=True) as eyes:
        for one in acts():
            eyes.at(one.name, one.address())
            expect(eyes.page.get_by_role("button", name=one.act.label, exact=True)).to_be_visible()


def test_what_came_of_an_act_is_said(acme: Rows, web: str, chromium: Browser) -> None:
    limits = reverse("admin:accounts_tenant_act", args=[acme.tenant.pk, "limits"])
    cancel = reverse("admin:learning_trainingrun_act", args=[acme.run.pk, "cancel"])

    def set_limits(page: Page) -> None:
        page.get_by_label("Requests a minute").fill("600")
        page.get_by_label("Why").fill("A smaller plan")
        page.get_by_role("button", name="Set the limits").click()
        expect(page.get_by_text("Set the limits: all keys together may ask 600 requests")).to_be_visible()

    def cancel_what_is_over(page: Page) -> None:
        page.get_by_label("Why").fill("It takes too long")
        page.get_by_role("button", name="Cancel the run").click()
        expect(page.get_by_text("Cancel the run: not done.")).to_be_visible()

    with looking(chromium, web, user=operator(), console=True) as eyes:
        eyes.after("console-act-done", limits, set_limits)
        eyes.after("console-act-refused", cancel, cancel_what_is_over)


def test_an_empty_list_says_what_fills_it(transactional_db: None, web: str, chromium: Browser) -> None:
    del transactional_db
    with looking(chromium, web, user=operator(), console=True) as eyes:
        eyes.at("console-drift-empty", reverse("admin:learning_driftreading_changelist"))


def test_every_row_is_whole(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=operator(), console=True) as eyes:
        for model in admin.site._registry:
            name = f"{model._meta.app_label}_{model._meta.model_name}"
            with system_scope("look"):
                row = model._default_manager.order_by("-pk").first()
            assert row is not None
            eyes.check(f"console-row-{name}", reverse(f"admin:{name}_change", args=[row.pk]))
            assert eyes.said == [], name
