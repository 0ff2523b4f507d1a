"""Pages that are empty, under way or refuse something,
and what stands in their place when they cannot be shown."""

import datetime as dt
import json
from functools import partial
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import Browser, Route, expect

from apps.accounts.models import Role, Tenant, User
from apps.accounts.pausing import pause_tenant
from apps.accounts.services import set_role
from apps.conversations.models import Feedback, Turn, TurnState
from apps.dashboard.entrance import found_tenant
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.browser.looking import ONLY, looking, serious
from tests.tenants import add_version

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
HERE = "/t/acme"


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    del transactional_db
    return fill("acme", text="in plain words")


def somebody(email: str, tenant: Tenant | None = None, role: Role = Role.VIEWER) -> User:
    with system_scope("tests"):
        user = User.objects.create_user(email)
    if tenant is not None:
        set_role(tenant_id=tenant.pk, user=user, role=role, actor="system:test")
    return user


def test_before_anything_was_said(transactional_db: None, web: str, chromium: Browser) -> None:
    del transactional_db
    owner = somebody("eve@example.org")
    with looking(chromium, web, user=owner) as eyes:
        eyes.at("nowhere", "/")
        here = f"/t/{found_tenant(owner, 'Eve & Co.').slug}"
        eyes.at("overview-empty", f"{here}/", idle=False)
        for page in ("sessions", "memory", "adapters", "runs", "drift", "keys", "data"):
            eyes.at(f"{page}-empty", f"{here}/{page}", idle=page != "runs")


def test_making_a_policy_and_a_tenant_and_leaving_one(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        eyes.at("policy-new", f"{HERE}/settings/policies/new")
        page.goto(f"{HERE}/settings/policies/new")
        page.get_by_label("Name").fill("default")
        page.get_by_role("button", name="Make it").click()
        page.locator(".errorlist").wait_for()
        eyes.see("policy-new-refused")
        page.get_by_label("Name").fill("coder")
        page.get_by_label("gentle").check()
        page.get_by_role("button", name="Make it").click()
        page.get_by_role("heading", name="Policy coder").wait_for()
        eyes.at("tenant-new", "/tenants/new")
        page.goto("/tenants/new")
        page.get_by_label("Name").fill("  ")
        page.get_by_role("button", name="Make it").click()
        page.locator(".errorlist").wait_for()
        eyes.see("tenant-new-refused")
        page.get_by_label("Name").fill("Side & Co.")
        page.get_by_role("button", name="Make it").click()
        page.wait_for_url("**/t/side-co/")
        eyes.at("leave-last", f"{HERE}/leave")
    with looking(chromium, web, user=somebody("guest@example.org", acme.tenant, Role.MEMBER)) as eyes:
        eyes.at("leave", f"{HERE}/leave")
        eyes.page.goto(f"{HERE}/leave")
        eyes.page.get_by_role("button", name="Leave the tenant").click()
        eyes.page.get_by_role("heading", name="No tenant yet").wait_for()


def test_a_paused_tenant(acme: Rows, web: str, chromium: Browser) -> None:
    pause_tenant(tenant_id=acme.tenant.pk, reason="The invoice of October is unpaid.", actor="user:1")
    with looking(chromium, web, user=acme.user) as eyes:
        eyes.at("overview-paused", f"{HERE}/")


def test_what_is_not_theirs_to_change(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=somebody("viewer@example.org", acme.tenant)) as eyes:
        eyes.at("settings-viewer", f"{HERE}/settings")
        eyes.at("error-403", f"{HERE}/data", status=403)
        eyes.at("error-404", "/t/globex/", status=404)
        if not ONLY or "error-form" in ONLY:
            eyes.page.goto(f"{HERE}/settings")
            eyes.page.context.clear_cookies(name="csrftoken")
            eyes.page.locator("form[action$='/logout/']").evaluate("one => one.submit()")
            eyes.page.get_by_role("heading", name="The form was not taken").wait_for()
            eyes.said.clear()  # of the status
            eyes.see("error-form")
    with looking(chromium, web, user=somebody("bare@example.org")) as eyes:
        eyes.at("error-nothing-to-ask", "/accounts/reauthenticate/", status=403)
    talks = somebody("member@example.org", acme.tenant, Role.MEMBER)
    with looking(chromium, web, user=talks) as eyes:
        eyes.at("members-member", f"{HERE}/members")


def test_what_broke(acme: Rows, web: str, chromium: Browser) -> None:
    with override_settings(SECRET_KEY="the one before"):
        RecoveryCodes.activate(acme.user)
    with tenant_scope(acme.tenant.pk):  # a row that nothing writes
        TrainingRun.objects.filter(pk=acme.run.pk).update(
            state=RunState.RUNNING, progress={"total": 4, "done": "x"}
        )
    with looking(chromium, web, user=acme.user) as eyes:
        eyes.at("error-secret", "/accounts/2fa/", status=503)
        eyes.at("error-500", f"{HERE}/runs/{acme.run.pk}", status=500)


def test_a_form_says_at_the_field_what_is_wrong(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"{HERE}/settings/policies/{acme.policy.pk}")
        page.eval_on_selector_all("form", "all => all.forEach(one => one.noValidate = true)")
        page.locator("[name=lr]").fill("-1")
        page.locator("form:has([name=lr]) button").first.click()
        page.locator(".errorlist").first.wait_for()
        assert page.locator("[name=lr]").input_value() == "-1"
        eyes.see("settings-policy-refused")
        page.get_by_label("Quiet minutes from this hour, UTC").fill("22")
        page.locator("form:has([name=budget_tokens]) button").click()
        wrong = page.locator("#memory-shadow_until_hour-wrong")
        expect(wrong).to_have_text("give both hours, each between 0 and 23, or neither")
        page.get_by_label("… until this one; both empty: all day").fill("6")
        page.locator("form:has([name=budget_tokens]) button").click()
        page.get_by_text("In quiet minutes from 22 to 6 o\u2019clock UTC").wait_for()
        page.goto(f"{HERE}/settings/alerts")
        page.locator("[name=url]").fill("http://10.0.0.1/in")
        page.locator("form:has([name=url]) [name=events]").first.check()
        page.locator("form:has([name=url]) button").first.click()
        page.locator(".errorlist, .problem").first.wait_for()
        eyes.see("settings-alerts-refused")


LOST = "The connection is lost. It is tried again."


def test_a_run_is_followed(acme: Rows, web: str, chromium: Browser) -> None:
    def now(**values: object) -> None:
        with tenant_scope(acme.tenant.pk):
            TrainingRun.objects.filter(pk=run.pk).update(**values)

    with tenant_scope(acme.tenant.pk):
        run = TrainingRun.objects.create(
            policy=acme.policy,
            state=RunState.RUNNING,
            trigger="threshold",
            parent=acme.version,
            started_at=timezone.now() - dt.timedelta(seconds=40),
        )
    under_way = {"phase": "learn", "done": 3, "total": 16, "seconds": 12.0}
    now(progress=under_way)
    with looking(chromium, web, user=acme.user) as eyes:
        page, others = eyes.page, eyes.page.context.new_page()
        page.goto(f"{HERE}/runs/{run.pk}")
        others.goto(f"{HERE}/runs")
        for one in (page, others):
            expect(one.get_by_text("learning: 3 of 16 reply tokens")).to_be_visible()
            expect(one.locator("[data-chart=loss]")).to_have_attribute("data-points", "1")
            expect(one.locator("[data-chart=loss] canvas")).to_have_count(1)
        eyes.see("run-open")
        now(progress=under_way | {"done": 9})
        for one in (page, others):
            expect(one.get_by_text("learning: 9 of 16 reply tokens")).to_be_visible()
        with tenant_scope(acme.tenant.pk):
            version = add_version(acme.policy, 3)
        ended = {"finished_at": timezone.now(), "version": version, "metrics": {"loss": 0.25, "ess": 0.5}}
        now(state=RunState.SUCCEEDED, **ended)
        for one in (page, others):  # nobody touched either
            expect(one.locator("[data-chart=loss]")).to_have_attribute("data-points", "2")
            expect(one.locator("[data-chart=loss] canvas")).to_have_count(1)
        expect(page.get_by_role("heading", name="What came of it")).to_be_visible()
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        expect(page.get_by_role("link", name="version 3")).to_be_visible()
        expect(page.locator("dt", has_text="Effective sample size").first.locator("+ dd")).to_have_text(
            "50 %"
        )
        (marked,) = json.loads(page.locator("[data-chart=loss]").get_attribute("data-marks") or "")
        assert marked["name"] == "this run"
        expect(others.get_by_text("No run is under way.")).to_be_visible()
        expect(others.locator(f"#state-{run.pk}")).to_have_text("succeeded")
        now(state=RunState.FAILED, reason="no space left on the device", version=None, metrics={})
        eyes.at("run-failed", f"{HERE}/runs/{run.pk}")


def test_a_stream_that_is_lost_is_said_and_goes_on(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        page, come = eyes.page, []

        def once(route: Route) -> None:
            come.append(route.request.headers.get("last-event-id"))
            if len(come) != 2:
                route.abort()
            else:  # one piece, and then the connection is lost
                route.fulfill(content_type="text/event-stream", body="id: one\ndata: <p>One run.</p>\n\n")

        page.route("**/runs/events*", once)
        page.goto(f"{HERE}/runs")
        word = page.locator("#lost")
        expect(word).to_have_text("")
        expect(word).to_have_text(LOST, timeout=20_000)  # it never began
        expect(page.get_by_text("One run.")).to_be_visible(timeout=20_000)
        expect(word).to_have_text("")
        expect(word).to_have_text(LOST, timeout=20_000)  # it was lost
        assert page.get_by_text("One run.").count() == 1  # what is shown stays
        assert serious(page) == []
        page.unroute("**/runs/events*")
        expect(page.get_by_text("No run is under way.")).to_be_visible(timeout=30_000)
        expect(word).to_have_text("")
        expect(page.locator("[data-chart=loss] canvas")).to_have_count(1)
        assert come[:2] == [None, None]
        assert set(come[2:]) == {"one"}  # it goes on from the last piece
        eyes.said.clear()  # of what was aborted


def _answered(answer: dict[str, Any], route: Route) -> None:
    route.fulfill(**answer)


def test_a_question_that_fails_is_said_until_it_is_answered(acme: Rows, web: str, chromium: Browser) -> None:
    with tenant_scope(acme.tenant.pk):
        Feedback.objects.all().delete()
        Sample.objects.all().delete()
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"{HERE}/sessions/{acme.session.pk}")
        turn = page.locator(f"#turn-{acme.turn.pk}")
        turn.get_by_role("button", name="Good").click()
        turn.get_by_text("judging…").wait_for()
        shown = turn.locator(".so-far").inner_text()
        for answer, word in (
            ({"status": 500, "body": "<h1>broken</h1>"}, LOST),
            ({"status": 404, "body": "<h1>gone</h1>"}, "A part of the page is gone: load it anew."),
            ({"status": 401, "body": ""}, "You are signed out: load the page anew."),
        ):
            page.route("**/so-far*", partial(_answered, answer))
            expect(page.locator("#lost")).to_have_text(word, timeout=15_000)
            assert turn.locator(".so-far").inner_text() == shown  # no error stands in its place
            page.unroute("**/so-far*")
            expect(page.locator("#lost")).to_have_text("", timeout=15_000)
        eyes.said.clear()  # of the statuses


def test_what_came_of_a_thumb_shows_by_itself(acme: Rows, web: str, chromium: Browser) -> None:
    with tenant_scope(acme.tenant.pk):
        Feedback.objects.all().delete()
        Sample.objects.all().delete()
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"{HERE}/sessions/{acme.session.pk}")
        turn = page.locator(f"#turn-{acme.turn.pk}")
        assert turn.get_by_text("judging…").count() == 0
        turn.get_by_role("button", name="Good").click()
        turn.get_by_text("judging…").wait_for()
        assert page.url.endswith(f"#turn-{acme.turn.pk}")
        eyes.see("session-judging")
        turn.get_by_label("What it should have been").fill("half a word")
        with tenant_scope(acme.tenant.pk):  # as the workers do it
            Judgement.objects.create(
                turn=acme.turn,
                judge="model",
                prompt_version="1",
                state=JudgementState.SETTLED,
                reward=1,
                settled_at=timezone.now(),
            )
            Sample.objects.create(
                policy=acme.policy, turn=acme.turn, source="live", state=SampleState.READY, reward=1.0
            )
        expect(turn.locator("dt", has_text="Reward").locator("xpath=following-sibling::dd")).to_have_text("1")
        expect(turn.get_by_text("judging…")).to_have_count(0)
        expect(turn.locator("summary", has_text="model")).to_be_visible()
        assert "UTC" not in turn.locator(".said-by time").inner_text()
        # what was being typed is still there
        assert turn.get_by_label("What it should have been").input_value() == "half a word"


def test_a_reply_and_its_form_come_to_an_open_page(acme: Rows, web: str, chromium: Browser) -> None:
    with tenant_scope(acme.tenant.pk):
        Feedback.objects.all().delete()
        Sample.objects.all().delete()
        reply = Turn.objects.get(pk=acme.turn.pk).reply
        Judgement.objects.all().delete()
        unheard = {"first_token_ms": None, "latency_ms": None, "finish_reason": "", "usage": {}}
        Turn.objects.filter(pk=acme.turn.pk).update(
            state=TurnState.PENDING, reply=None, completed_at=None, **unheard
        )
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"{HERE}/sessions/{acme.session.pk}")
        turn = page.locator(f"#turn-{acme.turn.pk}")
        turn.get_by_text("answering…").wait_for()
        assert turn.get_by_role("button", name="Good").count() == 0
        eyes.see("session-answering")
        with tenant_scope(acme.tenant.pk):  # as the gateway does it
            Turn.objects.filter(pk=acme.turn.pk).update(
                state=TurnState.COMPLETE, reply=reply, completed_at=timezone.now()
            )
        turn.get_by_role("button", name="Good").click()
        turn.get_by_text("judging…").wait_for()
        assert turn.locator("form.thumbs").count() == 1
        with tenant_scope(acme.tenant.pk):
            assert list(Feedback.objects.values_list("turn_id", "score")) == [(acme.turn.pk, 1)]
