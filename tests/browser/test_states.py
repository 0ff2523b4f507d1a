"""Pages that are empty, under way or refuse something,
and what stands in their place when they cannot be shown."""

import datetime as dt

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import Browser, expect

from apps.accounts.models import Role, Tenant, User
from apps.accounts.services import set_role
from apps.conversations.models import Feedback, Turn, TurnState
from apps.dashboard.entrance import found_tenant
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.browser.looking import ONLY, looking

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
            eyes.at(f"{page}-empty", f"{here}/{page}")


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


def test_a_run_is_followed(acme: Rows, web: str, chromium: Browser) -> None:
    def now(**values: object) -> None:
        with tenant_scope(acme.tenant.pk):
            TrainingRun.objects.filter(pk=acme.run.pk).update(**values)

    started = timezone.now() - dt.timedelta(seconds=40)
    under_way = {"phase": "learn", "done": 3, "total": 16, "seconds": 12.0}
    now(state=RunState.RUNNING, finished_at=None, started_at=started, progress=under_way, metrics={})
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(f"{HERE}/runs/{acme.run.pk}")
        expect(page.get_by_text("learn, 3 of 16")).to_be_visible()
        eyes.see("run-open")
        now(progress=under_way | {"done": 9})
        expect(page.get_by_text("learn, 9 of 16")).to_be_visible()
        now(state=RunState.FAILED, finished_at=timezone.now(), reason="no space left on the device")
        expect(page.get_by_text("no space left on the device")).to_be_visible()
        eyes.at("run-failed", f"{HERE}/runs/{acme.run.pk}")


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
