"""Signing up, being invited, and the pages of one's own account: whole in both widths and themes."""

import re
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP
from django.core import mail
from playwright.sync_api import Browser, BrowserContext, Page
from pytest_django import Settings

from apps.accounts import invitations
from apps.accounts.models import Role
from tests.apps.console.rows import Rows, fill
from tests.browser.test_pages import SHOTS, serious

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
    link = re.search(r"http://web(/invitations/\S+)", mail.outbox[-1].body)
    assert link is not None
    return link[1]


def sign_in(page: Page, rows: Rows) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(rows.user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def look(page: Page, name: str, path: str, *, width: int, scheme: str) -> None:
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert serious(page) == [], name
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_coming_in(acme: Rows, web: str, chromium: Browser, width: int, scheme: str) -> None:
    paths = {
        "login": "/accounts/login/",
        "signup": "/accounts/signup/",
        "password-reset": "/accounts/password/reset/",
        "invitation": invited(acme),
        "invitation-ended": "/invitations/nothing",
    }
    with window_of(chromium, web, width=width, scheme=scheme) as window:
        page, said = window.new_page(), watched(window)
        page.set_default_timeout(15_000)
        for name, path in paths.items():
            look(page, name, path, width=width, scheme=scheme)
        page.goto("/accounts/signup/")
        page.get_by_label("Email").fill("eve@example.org")
        for field in page.locator("input[type=password]").all():
            field.fill("short")
        page.get_by_role("button", name="Make it").click()
        page.locator(".errorlist").first.wait_for()
        look_again(page, "signup-refused", width=width, scheme=scheme)
    assert [one for one in said if "404" not in one] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_ones_own_account(acme: Rows, web: str, chromium: Browser, width: int, scheme: str) -> None:
    EmailAddress.objects.create(user=acme.user, email=acme.user.email, verified=True, primary=True)
    with window_of(chromium, web, width=width, scheme=scheme) as window:
        page, said = window.new_page(), watched(window)
        page.set_default_timeout(15_000)
        sign_in(page, acme)
        page.wait_for_url("**/t/acme/")
        page.goto("/accounts/2fa/totp/activate/")
        if page.get_by_role("button", name="Confirm").count():
            look_again(page, "reauthenticate", width=width, scheme=scheme)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Confirm").click()
            page.locator(".qr").wait_for()
        paths = {
            "mfa-authenticator": "/accounts/2fa/totp/activate/",
            "mfa-none": "/accounts/2fa/",
            "email": "/accounts/email/",
            "password": "/accounts/password/change/",
            "devices": "/accounts/sessions/",
            "mfa-keys": "/accounts/2fa/webauthn/add/",
        }
        for name, path in paths.items():
            look(page, name, path, width=width, scheme=scheme)
        page.goto(paths["mfa-authenticator"])
        assert page.locator(".qr svg path").bounding_box() is not None
        TOTP.activate(acme.user, "JBSWY3DPEHPK3PXP")
        look(page, "mfa", "/accounts/2fa/", width=width, scheme=scheme)
        look(page, "mfa-recovery", "/accounts/2fa/recovery-codes/generate/", width=width, scheme=scheme)
        assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_second_factor_is_asked_for(
    acme: Rows, web: str, chromium: Browser, width: int, scheme: str
) -> None:
    TOTP.activate(acme.user, "JBSWY3DPEHPK3PXP")
    with window_of(chromium, web, width=width, scheme=scheme) as window:
        page = window.new_page()
        page.set_default_timeout(15_000)
        sign_in(page, acme)
        page.wait_for_url("**/2fa/authenticate/")
        look_again(page, "mfa-asked", width=width, scheme=scheme)


def window_of(chromium: Browser, web: str, *, width: int, scheme: str) -> BrowserContext:
    """Return a window of that width in which nobody is signed in."""
    return chromium.new_context(
        base_url=web,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )


def watched(window: BrowserContext) -> list[str]:
    """Return what the window's consoles say of errors from now on."""
    said: list[str] = []
    window.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    window.on("weberror", lambda error: said.append(str(error.error)))
    return said


def look_again(page: Page, name: str, *, width: int, scheme: str) -> None:
    """Look at the page that is shown."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert serious(page) == [], name
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)
