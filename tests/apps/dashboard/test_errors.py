"""What stands in place of a page: what happened, what to do next, whom to tell, and how they find it."""

import datetime as dt
import logging
import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.utils import timezone

from apps.accounts.models import Role, User
from apps.dashboard import api, errors, sessions
from apps.learning.models import RunState, TrainingRun
from kernel.redaction import RedactingFormatter
from kernel.request_ids import HEADER, NamesRequest
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser, member

ID = re.compile(r"request <code>([0-9a-f]{12})</code>")


def words(page: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.content.decode()))


def broken_page(rows: Rows) -> str:
    """Return the address of a page that cannot be shown: of a row that nothing writes."""
    with tenant_scope(rows.tenant.pk):
        TrainingRun.objects.filter(pk=rows.run.pk).update(
            state=RunState.RUNNING, progress={"total": 4, "done": "x"}
        )
    return f"/t/acme/runs/{rows.run.pk}"


def test_a_page_that_broke_names_the_request_that_the_log_names(
    acme: Rows, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OPERATOR_CONTACT = "ops@example.org"
    at = broken_page(acme)
    page = browser(acme.user).get(at)
    assert page.status_code == 500
    (named,) = ID.findall(page.content.decode())
    assert page.headers[HEADER] == named
    assert "Does it happen again? Tell ops@example.org, with this: request" in words(page)
    assert '<a href="mailto:ops@example.org">' in page.content.decode()
    assert f'<a class="go" href="{at}">Try again</a>' in page.content.decode()
    (record,) = [one for one in caplog.records if one.name == "django.request"]
    assert NamesRequest().filter(record)
    line = RedactingFormatter("%(message)s%(of_request)s").format(record)
    assert line.startswith(f"Internal Server Error: {at} (request {named})\nTraceback")


def test_each_request_has_an_id_and_a_client_does_not_choose_it(acme: Rows) -> None:
    client = browser(acme.user)
    first, second = (client.get("/t/acme/", headers={HEADER: "mine"}).headers[HEADER] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert first != second


def test_a_line_of_no_request_is_left_as_it_is() -> None:
    record = logging.makeLogRecord({"msg": "swept"})
    assert NamesRequest().filter(record)
    assert RedactingFormatter("%(message)s%(of_request)s").format(record) == "swept"


def test_what_was_sent_is_not_sent_again_by_a_link(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(**given: Any) -> None:
        raise RuntimeError(str(given))

    monkeypatch.setattr(sessions, "give_feedback", break_down)
    page = browser(acme.user).post(f"/t/acme/turns/{acme.turn.pk}/feedback", {"score": "1"})
    assert page.status_code == 500
    assert "look before you send it once more" in words(page)
    assert "Try again" not in words(page)
    assert "Tell whoever runs this installation, with this: request" in words(page)


def test_the_page_needs_no_database() -> None:
    page = errors.broke(RequestFactory().get("/t/acme/"))  # this test has none: a query would raise
    assert page.status_code == 500
    assert "Something broke" in words(page)


def test_rest_says_it_in_its_own_format(acme: Rows, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.OPERATOR_CONTACT = "the platform team"

    def break_down(view: Any) -> None:
        raise RuntimeError(str(view))

    monkeypatch.setattr(api.ViewsApi, "rows", break_down)
    answer = browser(acme.user).get("/api/views")
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
    problem = answer.json()
    assert (problem["code"], problem["status"]) == ("internal", 500)
    assert problem["request_id"] == answer.headers[HEADER]
    assert f"tell the platform team the request's id: {problem['request_id']}" in problem["detail"]


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("https://status.example.org", '<a href="https://status.example.org">https://status.example.org</a>'),
        ("<b>us</b> ", "Tell &lt;b&gt;us&lt;/b&gt;,"),
        ("javascript:alert(1)", "Tell javascript:alert(1),"),
    ],
)
def test_whom_to_tell_is_what_the_installation_says(settings: Any, named: str, shown: str) -> None:
    settings.OPERATOR_CONTACT = named
    assert shown in errors.broke(RequestFactory().get("/")).content.decode()


@pytest.mark.parametrize(
    ("role", "path", "who"),
    [
        (Role.VIEWER, "sessions", "its members, admins and owners"),
        (Role.MEMBER, "data", "its admins and owners"),
        (Role.ADMIN, "data/delete?subject=everything", "its owners"),
    ],
)
def test_a_role_that_is_too_low_is_named_with_those_that_are_not(
    acme: Rows, role: Role, path: str, who: str
) -> None:
    page = browser(member(acme.tenant, role)).get(f"/t/acme/{path}")
    assert page.status_code == 403
    assert f"Your role in ACME is {role}, and this is for {who}." in words(page)
    assert ('<a href="/t/acme/members">who they are</a>' in page.content.decode()) == (role != Role.VIEWER)
    assert ID.findall(page.content.decode()) == [page.headers[HEADER]]


@pytest.mark.parametrize("path", ["settings", "settings/judging", "settings/policies/{policy}"])
def test_what_a_role_may_look_at_it_may_not_send(acme: Rows, path: str) -> None:
    client = browser(member(acme.tenant, Role.VIEWER))
    at = f"/t/acme/{path.format(policy=acme.policy.pk)}"
    assert client.get(at).status_code == 200
    page = client.post(at, {})
    assert page.status_code == 403
    assert "Your role in ACME is viewer, and this is for its admins and owners." in words(page)


def test_a_form_of_nowhere_is_refused_in_words(acme: Rows) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(acme.user)
    page = client.post(f"/t/acme/turns/{acme.turn.pk}/feedback", {"score": "1"})
    assert page.status_code == 403
    assert "The form was not taken" in words(page)
    assert "Go back, load the page again, and send it once more." in words(page)
    assert ID.findall(page.content.decode()) == [page.headers[HEADER]]


def test_a_refusal_of_unknown_reason_says_what_to_try(acme: Rows) -> None:
    request = RequestFactory().get("/accounts/github/login/callback/")
    request.user = acme.user
    request.session = request._messages = {}  # type: ignore[assignment,attr-defined]
    page = errors.refused(request, PermissionDenied())
    assert "Go back, load the page again, and try once more." in words(page)
    request = RequestFactory().get("/console/")
    request.user = acme.user
    request.session = request._messages = {}  # type: ignore[assignment,attr-defined]
    assert "for operators of the installation" in words(errors.refused(request, PermissionDenied()))


@pytest.fixture
def bare(db: None) -> User:
    """Return an account that came through somebody else's sign-in:
    no password, an address that nobody confirmed."""
    del db
    with system_scope("tests"):
        user = User.objects.create_user("bare@example.org")
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=False)
    assert not user.has_usable_password()
    return user


@pytest.mark.parametrize(
    ("path", "addresses"),
    [
        ("2fa/totp/activate/", 0),
        ("2fa/webauthn/add/", 0),
        ("reauthenticate/", 1),
        ("2fa/reauthenticate/", 1),
    ],
)
def test_who_has_nothing_to_be_asked_for_hears_that_and_not_of_roles(
    bare: User, path: str, addresses: int
) -> None:
    if not addresses:
        with system_scope("tests"):
            EmailAddress.objects.filter(user=bare).delete()
    page = browser(bare).get(f"/accounts/{path}")
    assert page.status_code == 403
    seen = words(page)
    assert "no password, no confirmed address and no second factor" in seen
    assert "role" not in seen
    for step in ("/accounts/email/", "/accounts/password/set/"):
        assert f'href="{step}"' in page.content.decode()
        assert browser(bare).get(step).status_code == 200


def test_each_way_out_leads_on(bare: User) -> None:
    client, at = browser(bare), "/accounts/reauthenticate/"
    assert client.get(at).status_code == 403
    with system_scope("tests"):
        EmailAddress.objects.filter(user=bare).update(verified=True)
    assert client.get(at)["Location"] == "/accounts/reauthenticate/code/"
    with system_scope("tests"):
        EmailAddress.objects.filter(user=bare).update(verified=False)
    new = "a password of some length"
    sent = client.post("/accounts/password/set/", {"password1": new, "password2": new})
    assert sent.status_code == 302
    with system_scope("tests"):
        bare.refresh_from_db()
    assert browser(bare).get(at).status_code == 200


def test_a_second_factor_waits_for_the_address_in_words(bare: User) -> None:
    page = browser(bare).get("/accounts/2fa/totp/activate/", follow=True)
    assert page.redirect_chain == [("/accounts/2fa/", 302)]
    assert "Confirm every address of your account first, or take it out" in words(page)


def test_the_time_of_it_is_told(acme: Rows) -> None:
    page = browser(acme.user).get(broken_page(acme)).content.decode()
    told = re.search(r'<time datetime="([^"]+)"', page)
    assert told is not None
    assert abs(dt.datetime.fromisoformat(told[1]) - timezone.now()) < dt.timedelta(minutes=5)
