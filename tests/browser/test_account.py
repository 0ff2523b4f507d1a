"""The pages of one's own account: addresses, password, devices, second factors, linked accounts."""

import pytest
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from playwright.sync_api import Browser, Page
from pytest_django import Settings

from tests.apps.console.rows import Rows
from tests.browser.looking import looking
from tests.browser.test_entrance import PASSWORD, acme, sign_in

__all__ = ["acme"]  # the fixture
pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
SECRET = "JBSWY3DPEHPK3PXP"


def confirm(page: Page) -> None:
    """Say the password once more."""
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def test_addresses_password_and_devices(acme: Rows, web: str, chromium: Browser) -> None:
    EmailAddress.objects.create(user=acme.user, email=acme.user.email, verified=True, primary=True)
    second = "a.rather.long.address.of.somebody@mail.department.example.org"
    other = EmailAddress.objects.create(user=acme.user, email=second, verified=False)
    SocialAccount.objects.create(user=acme.user, provider="github", uid="4711", extra_data={"login": "eve"})
    with looking(chromium, web) as eyes:
        page = eyes.page
        sign_in(page, acme.user.email)
        page.wait_for_url("**/t/acme/")
        eyes.at("email", "/accounts/email/")
        eyes.at("email-confirm", f"/accounts/confirm-email/{EmailConfirmationHMAC(other).key}/")
        page.get_by_role("button", name="It is mine").click()
        page.get_by_text(f"{second} is confirmed.").wait_for()
        eyes.at("email-link-ended", "/accounts/confirm-email/nothing/")
        eyes.at("password", "/accounts/password/change/")
        page.goto("/accounts/password/change/")
        page.get_by_label("Password now").fill("not this one at all")
        page.get_by_label("New password", exact=True).fill("short")
        page.get_by_label("New password, again").fill("short")
        page.get_by_role("button", name="Change it").click()
        page.locator(".errorlist").first.wait_for()
        eyes.see("password-refused")
        eyes.at("devices", "/accounts/sessions/")
        eyes.at("linked", "/accounts/3rdparty/")
        eyes.at("logout", "/accounts/logout/")


def test_an_account_without_a_password_gets_one(acme: Rows, web: str, chromium: Browser) -> None:
    acme.user.set_unusable_password()
    acme.user.save(update_fields=["password"])
    with looking(chromium, web, user=acme.user) as eyes:
        eyes.at("password-none", "/accounts/password/set/")


def test_the_app_and_the_codes(acme: Rows, web: str, chromium: Browser) -> None:
    EmailAddress.objects.create(user=acme.user, email=acme.user.email, verified=True, primary=True)
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        eyes.at("mfa-none", "/accounts/2fa/")
        page.goto("/accounts/2fa/totp/activate/")
        page.wait_for_url("**/reauthenticate/**")
        eyes.see("reauthenticate")
        page.get_by_role("link", name="Send me a sign-in code").click()
        page.wait_for_url("**/reauthenticate/code/**")
        eyes.see("reauthenticate-mail")
        page.get_by_role("button", name="Send the code").click()
        page.wait_for_url("**/code/confirm/**")
        eyes.see("reauthenticate-code")
        page.goto("/accounts/2fa/totp/activate/")
        confirm(page)
        page.locator(".qr").wait_for()
        assert page.locator(".qr svg path").bounding_box() is not None
        eyes.see("mfa-authenticator")
        TOTP.activate(acme.user, SECRET)
        RecoveryCodes.activate(acme.user)
        eyes.at("mfa", "/accounts/2fa/")
        eyes.at("mfa-reauthenticate", "/accounts/2fa/reauthenticate/")
        eyes.at("mfa-codes", "/accounts/2fa/recovery-codes/")
        eyes.at("mfa-codes-anew", "/accounts/2fa/recovery-codes/generate/")
        eyes.at("mfa-authenticator-off", "/accounts/2fa/totp/deactivate/")


def test_a_security_key_is_added_named_used_and_taken_out(
    acme: Rows, web: str, chromium: Browser, settings: Settings
) -> None:
    EmailAddress.objects.create(user=acme.user, email=acme.user.email, verified=True, primary=True)
    here = web.replace("127.0.0.1", "localhost")  # keys know names only
    with looking(chromium, here) as eyes:
        page = eyes.page
        plugged_in(page)
        sign_in(page, acme.user.email)
        page.wait_for_url("**/t/acme/")
        page.goto("/accounts/2fa/webauthn/add/")
        confirm(page)
        page.wait_for_url("**/2fa/webauthn/add/")
        eyes.see("mfa-key-add")
        page.get_by_label("What to call it").fill("the blue one")
        page.get_by_role("button", name="Add it").click()
        page.get_by_text("The key is added.").wait_for()
        key = Authenticator.objects.get(type=Authenticator.Type.WEBAUTHN)
        eyes.at("mfa-keys", "/accounts/2fa/webauthn/")
        eyes.at("mfa-key-name", f"/accounts/2fa/webauthn/keys/{key.pk}/edit/")
        eyes.at("mfa-key-asked", "/accounts/2fa/webauthn/reauthenticate/")
        page.context.clear_cookies()
        sign_in(page, acme.user.email)
        page.wait_for_url("**/2fa/authenticate/")
        page.get_by_role("button", name="Use a security key").click()
        page.wait_for_url("**/t/acme/")
        page.goto(f"/accounts/2fa/webauthn/keys/{key.pk}/remove/")
        page.wait_for_url("**/reauthenticate/**")
        page.goto(page.url.replace("/accounts/reauthenticate/", "/accounts/2fa/webauthn/reauthenticate/"))
        page.get_by_role("button", name="Use a security key").click()
        page.wait_for_url("**/remove/")
        eyes.see("mfa-key-out")
        page.get_by_role("button", name="Take it out").click()
        page.get_by_text("The key is taken out.").wait_for()
    assert not Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN).exists()


def plugged_in(page: Page) -> None:
    """Plug a security key in that answers by itself."""
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    devices.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "usb",
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
