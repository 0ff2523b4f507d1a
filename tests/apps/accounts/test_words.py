"""What the forms of an account say where they refuse:
in our words, with the limits that hold, and the same whoever is there."""

import html
import re
from typing import Any

import pytest
from allauth.account import app_settings
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.test import Client
from django.utils.module_loading import import_string

from apps.accounts import words
from apps.accounts.models import User
from tests.apps.accounts.conftest import PASSWORD

STOCK = re.compile(
    r"This field is required|Enter a valid|Ensure this value|This password is|The password is too|"
    r"same password each time|Select a valid|specified are not|Incorrect|Please|Too many failed|Too Many Requests"
)


def inside(user: User) -> Client:
    """Return a browser that has just signed in, so that nothing is asked for once more."""
    client = Client()
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    return client


def refused(client: Client, path: str, form: dict[str, Any]) -> list[str]:
    """Return what a page says against a form."""
    page = client.post(path, form)
    assert page.status_code == 200, (page.status_code, page.headers)
    shown = page.content.decode()
    assert not STOCK.search(shown), STOCK.search(shown)
    said = re.findall(r'<ul class="errorlist[^>]*>(.*?)</ul>', shown, re.DOTALL)
    return [html.unescape(one) for one in re.findall(r"<li>(.*?)</li>", " ".join(said), re.DOTALL)]


@pytest.mark.parametrize(
    ("library", "ours"),
    [
        (DefaultAccountAdapter, words.ACCOUNT),
        (DefaultSocialAccountAdapter, words.LINKED),
        (DefaultMFAAdapter, words.SECOND_FACTOR),
    ],
)
def test_every_refusal_of_the_library_has_our_words(library: Any, ours: dict[str, str]) -> None:
    not_here = {
        code for code in library.error_messages if "phone" in code or "username" in code
    } | {"select_only_one"}  # fmt: skip
    assert set(ours) == set(library.error_messages) - not_here
    for code, said in ours.items():
        assert said.endswith(".")
        assert said != library.error_messages[code]
        assert said.count("%") == str(library.error_messages[code]).count("%"), code


def test_all_forms_speak_so() -> None:
    listed = {**settings.ACCOUNT_FORMS, **settings.SOCIALACCOUNT_FORMS}.values()
    for path in (*listed, *settings.MFA_FORMS.values()):
        assert issubclass(import_string(path), words.InOurWords), path


def test_the_limits_that_are_named_are_those_that_hold(eve: User) -> None:
    assert app_settings.RATE_LIMITS["login_failed"] == "10/m/ip,5/300s/key"
    mismatch = words.ACCOUNT["email_password_mismatch"]
    assert "After 5 tries that fail, an address waits for 5 minutes." in mismatch
    client, wrong = Client(), {"login": eve.email, "password": "not this one"}
    for _ in range(5):
        assert refused(client, "/accounts/login/", wrong) == [mismatch]
    assert refused(client, "/accounts/login/", wrong) == [
        "Too many tries: after 5 that fail within 5 minutes none is taken. Wait 5 minutes, then try again."
    ]


def test_nothing_tells_who_has_an_account(eve: User) -> None:
    answers = []
    for email in (eve.email, "nobody@example.org"):
        client = Client()
        signing_in = refused(client, "/accounts/login/", {"login": email, "password": "not this one"})
        reset = client.post("/accounts/password/reset/", {"email": email})
        answers.append((signing_in, reset.status_code, reset["Location"]))
    assert answers[0] == answers[1]
    assert answers[0] == ([words.ACCOUNT["email_password_mismatch"]], 302, "/accounts/password/reset/done/")
    taken = {"email": eve.email, "password1": PASSWORD, "password2": PASSWORD}
    (said,) = refused(Client(), "/accounts/signup/", taken)
    assert said == words.ACCOUNT["email_taken"]
    for word in ("registered", "exists", "already", "taken", "account"):
        assert word not in said
    EmailAddress.objects.create(user=eve, email="second@example.org", verified=True)
    assert refused(Client(), "/accounts/signup/", {**taken, "email": "second@example.org"}) == [said]


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("login/", {}, ["Email: this is empty. Fill it in.", "Password: this is empty. Fill it in."]),
        (
            "login/",
            {"login": "eve", "password": "x"},
            ["Email: this is no address. It looks like you@example.org."],
        ),
        (
            "login/",
            {"login": f"{'e' * 64}@{'e' * 300}.org", "password": "x"},
            [
                "Email: this is no address. It looks like you@example.org.",
                "Email: at most 320 characters, and this has 369. Make it shorter.",
            ],
        ),
        (
            "signup/",
            {"email": "new@example.org", "password1": "short", "password2": "short"},
            ["Password: at least 10 characters. Make it longer."],
        ),
        (
            "signup/",
            {"email": "new@example.org", "password1": PASSWORD, "password2": f"{PASSWORD}!"},
            ["Password, again: the two are not the same. Type the new password twice."],
        ),
        (
            "signup/",
            {"email": "mirabel@example.org", "password1": "mirabel@example.org", "organisation": "x" * 121},
            [
                "Password: it is too much like your email. Take another.",
                "Password, again: this is empty. Fill it in.",
                "Name of your team or yourself: at most 120 characters, and this has 121. Make it shorter.",
            ],
        ),
        (
            "signup/",
            {"email": "new@example.org", "password1": "qwertyuiop", "password2": "qwertyuiop"},
            ["Password: many people have this one, so it is guessed first. Take another."],
        ),
        ("password/reset/", {"email": "eve"}, ["Email: this is no address. It looks like you@example.org."]),
    ],
)
def test_a_visitor_is_told_which_field_and_what_to_do(
    eve: User, path: str, form: dict[str, str], said: list[str]
) -> None:
    del eve
    assert sorted(refused(Client(), f"/accounts/{path}", form)) == sorted(said)


def test_somebody_who_is_in_is_told_too(eve: User) -> None:
    client = inside(eve)
    change = {"oldpassword": "not this one", "password1": "short", "password2": "shirt"}
    assert refused(client, "/accounts/password/change/", change) == [
        words.ACCOUNT["enter_current_password"],
        "New password: at least 10 characters. Make it longer.",
    ]
    long = "another password of some length"
    change = {"oldpassword": PASSWORD, "password1": long, "password2": f"{long}!"}
    assert refused(client, "/accounts/password/change/", change) == [
        "New password, again: the two are not the same. Type the new password twice."
    ]
    assert refused(client, "/accounts/email/", {"action_add": "", "email": eve.email}) == [
        words.ACCOUNT["duplicate_email"]
    ]
    assert refused(client, "/accounts/reauthenticate/", {"password": "not this one"}) == [
        words.ACCOUNT["incorrect_password"]
    ]
    assert client.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302
    EmailAddress.objects.filter(user=eve).update(verified=True)
    assert refused(client, "/accounts/2fa/totp/activate/", {"code": ""}) == [
        "Code: this is empty. Fill it in."
    ]
    assert refused(client, "/accounts/2fa/totp/activate/", {"code": "000000"}) == [
        words.SECOND_FACTOR["incorrect_code"]
    ]
    TOTP.activate(eve, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(eve)
    assert refused(client, "/accounts/email/", {"action_add": "", "email": "more@example.org"}) == [
        words.SECOND_FACTOR["add_email_blocked"]
    ]
    asked = Client()
    asked.post("/accounts/login/", {"login": eve.email, "password": PASSWORD})
    assert refused(asked, "/accounts/2fa/authenticate/", {"code": "12"}) == [
        words.SECOND_FACTOR["incorrect_code"]
    ]


def test_what_is_asked_too_often_is_answered_with_a_page_of_ours(eve: User) -> None:
    del eve
    client = Client()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ACCOUNT_RATE_LIMITS", {"reset_password": "1/m/ip"})
        for status in (302, 429):
            answer = client.post("/accounts/password/reset/", {"email": "nobody@example.org"})
            assert answer.status_code == status
    page = answer.content.decode()
    assert "This was asked too often" in page
    assert not STOCK.search(page)
    assert answer["Content-Security-Policy"].startswith("default-src 'none'")
