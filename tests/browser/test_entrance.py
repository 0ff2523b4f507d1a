"""Signing up, signing in, being invited, a password that was forgotten: pages for who is not in yet."""

import re

import pytest
from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.test import Client, RequestFactory
from playwright.sync_api import Browser, Page
from pytest_django import Settings

from apps.accounts import invitations
from apps.accounts.models import Role, User
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill
from tests.browser.looking import looking
from tests.mails import sent

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
PASSWORD = "a password of some length"


@pytest.fixture
def acme(transactional_db: None, settings: Settings) -> Rows:
    del transactional_db
    rows = fill("acme", text="in plain words")
    # the web's own settings know no fast hash
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    rows.user.set_password(PASSWORD)
    rows.user.save(update_fields=["password"])
    return rows


def invited(rows: Rows) -> str:
    """Return the path of an invitation's link."""
    invitations.invite(
        tenant=rows.tenant,
        email="guest@example.org",
        role=Role.MEMBER,
        inviter=rows.user,
        link="http://web/invitations/{token}",
    )
    link = re.search(r"http://web(/invitations/\S+)", str(sent()[-1].body))
    assert link is not None
    return link[1]


def sign_in(page: Page, email: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_coming_in(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web) as eyes:
        page = eyes.page
        eyes.at("login", "/accounts/login/")
        sign_in(page, "nobody@example.org")
        page.locator(".errorlist").first.wait_for()
        eyes.see("login-refused")
        eyes.at("signup", "/accounts/signup/")
        page.get_by_label("Email").fill("eve@example.org")
        for field in page.locator("input[type=password]").all():
            field.fill("short")
        page.get_by_role("button", name="Make it").click()
        page.locator(".errorlist").first.wait_for()
        eyes.see("signup-refused")
        eyes.at("email-sent", "/accounts/confirm-email/")
        eyes.at("invitation", invited(acme))
        eyes.at("invitation-ended", "/invitations/nothing", status=404)


def test_who_is_invited_and_signed_in_joins_with_a_click(acme: Rows, web: str, chromium: Browser) -> None:
    with system_scope("tests"):
        guest = User.objects.create_user("guest@example.org")
    with looking(chromium, web, user=guest) as eyes:
        eyes.at("invitation-signed-in", invited(acme))
        eyes.page.goto(invited(acme))
        eyes.page.get_by_role("button", name="Join as guest@example.org").click()
        eyes.page.wait_for_url("**/t/acme/")


def test_what_is_asked_too_often(acme: Rows, web: str, chromium: Browser) -> None:
    del acme
    with looking(chromium, web) as eyes:
        page = eyes.page
        for _ in range(6):  # five a minute for one address
            page.goto("/accounts/password/reset/")
            page.get_by_label("Email").fill("often@example.org")
            page.get_by_role("button", name="Send the link").click()
            page.get_by_role("heading", level=1).wait_for()
        page.get_by_role("heading", name="This was asked too often").wait_for()
        eyes.said.clear()  # of the status
        eyes.see("error-429")


def test_a_forgotten_password(acme: Rows, web: str, chromium: Browser) -> None:
    from allauth.account.forms import default_token_generator  # reads the settings

    key = f"{user_pk_to_url_str(acme.user)}-{default_token_generator.make_token(acme.user)}"
    with looking(chromium, web) as eyes:
        page = eyes.page
        eyes.at("password-reset", "/accounts/password/reset/")
        page.goto("/accounts/password/reset/")
        page.get_by_label("Email").fill(acme.user.email)
        page.get_by_role("button", name="Send the link").click()
        page.wait_for_url("**/reset/done/")
        eyes.see("password-reset-sent")
        eyes.at("password-link-ended", "/accounts/password/reset/key/1-nothing/")
        page.goto(f"/accounts/password/reset/key/{key}/")
        page.get_by_label("New password", exact=True).fill("another password of some length")
        page.get_by_label("New password, again").fill("another password of some length")
        eyes.see("password-new")
        page.get_by_role("button", name="Set it").click()
        page.wait_for_url("**/reset/key/done/")
        eyes.see("password-is-set")
    with system_scope("look"):
        acme.user.refresh_from_db()
    assert acme.user.check_password("another password of some length")


def test_an_account_that_was_switched_off(acme: Rows, web: str, chromium: Browser) -> None:
    acme.user.is_active = False
    acme.user.save(update_fields=["is_active"])
    with looking(chromium, web) as eyes:
        eyes.at("account-closed", "/accounts/inactive/")


def test_the_second_factor_is_asked_for(acme: Rows, web: str, chromium: Browser) -> None:
    TOTP.activate(acme.user, "JBSWY3DPEHPK3PXP")
    with looking(chromium, web) as eyes:
        sign_in(eyes.page, acme.user.email)
        eyes.page.wait_for_url("**/2fa/authenticate/")
        eyes.see("mfa-asked")


def test_coming_from_elsewhere(acme: Rows, web: str, chromium: Browser, settings: Settings) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = {"github": {"APPS": [{"client_id": "ours", "secret": ""}]}}
    with looking(chromium, web) as eyes:
        eyes.at("linked-github", "/accounts/github/login/")
        eyes.at("linked-google", "/accounts/google/login/")
        eyes.at("linked-cancelled", "/accounts/3rdparty/login/cancelled/")
        eyes.at("linked-error", "/accounts/3rdparty/login/error/", status=401)
        waiting = Client().session
        waiting["socialaccount_sociallogin"] = SocialLogin(
            provider=get_adapter().get_provider(RequestFactory().get("/"), "github"),
            user=User(email=acme.user.email),
            account=SocialAccount(provider="github", uid="4711", extra_data={"login": "eve"}),
            email_addresses=[EmailAddress(email=acme.user.email, verified=True, primary=True)],
        ).serialize()
        waiting.save()
        key = str(waiting.session_key)
        eyes.page.context.add_cookies([{"name": "sessionid", "value": key, "url": web, "httpOnly": True}])
        eyes.at("linked-signup", "/accounts/3rdparty/signup/")
