"""Where an address must be confirmed, nobody learns by signing up whether it has an account."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import Tenant, User
from kernel.tenancy import system_scope
from tests.apps.console.rows import fill
from tests.apps.dashboard.conftest import browser
from tests.apps.dashboard.test_entrance import invited, sign_up
from tests.mails import sent

pytestmark = pytest.mark.usefixtures("db", "valkey")


def seen(client: Client, email: str) -> dict[str, Any]:
    """Return all that a visitor sees of signing up with an address, and of going on from there."""
    answer = sign_up(client, email, "Theirs")
    page = client.get(answer["Location"])
    inside = client.get("/")
    return {
        "status": answer.status_code,
        "to": answer["Location"],
        "headers": sorted(set(answer.headers) - {"Date"}),
        "cookies": sorted(
            (name, cookie["max-age"], cookie["path"]) for name, cookie in client.cookies.items()
        ),
        "body": answer.content,
        "page": re.sub(
            r'nonce="[^"]*"|nonce-[^\']*|name="csrfmiddlewaretoken" value="[^"]*"',
            "",
            page.content.decode().replace(email, "who was typed"),
        ),
        "after": (inside.status_code, inside["Location"]),
    }


def test_a_taken_address_is_answered_as_a_free_one(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    sign_up(Client(), "bob@example.org", "His")
    sent()
    mail.outbox.clear()
    cache.clear()  # an address gets one such mail in three minutes
    taken, free = seen(Client(), "bob@example.org"), seen(Client(), "eve@example.org")
    assert taken == free
    assert "Look into your mail" in taken["page"]
    assert [(one.to, "There is one already" in one.body) for one in sent()] == [
        (["bob@example.org"], True),
        (["eve@example.org"], False),
    ]
    with system_scope("look"):
        assert sorted(User.objects.values_list("email", flat=True)) == ["bob@example.org", "eve@example.org"]
        assert Tenant.objects.filter(name="Theirs").count() == 1


def test_who_follows_the_link_comes_in(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client = Client()
    sign_up(client, "eve@example.org", "Hers")
    assert client.get("/t/hers/").status_code == 302
    link = re.search(r"http://testserver(/accounts/confirm-email/\S+)", str(sent()[-1].body))
    assert link is not None
    client.post(link[1])
    signed_in = client.post(
        "/accounts/login/", {"login": "eve@example.org", "password": "correct horse battery staple"}
    )
    assert signed_in.status_code == 302
    assert client.get("/t/hers/").status_code == 200


def test_who_was_invited_has_confirmed_their_address_by_coming(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    acme = fill("acme")
    link = invited(browser(acme.user), "guest@example.org")
    guest, other = Client(), Client()
    for client in (guest, other):
        client.get(link)
    sign_up(other, "somebody.else@example.org")  # the invitation is not theirs, and confirms nothing
    sign_up(guest, "guest@example.org")
    assert guest.get("/")["Location"] == "/t/acme/"
    assert other.get("/")["Location"] == "/accounts/login/?next=/"
    with system_scope("look"):
        confirmed = dict(EmailAddress.objects.values_list("email", "verified"))
    assert (confirmed["guest@example.org"], confirmed["somebody.else@example.org"]) == (True, False)


@pytest.mark.parametrize(
    ("settings_of", "given", "wanted"),
    [
        ("production", {}, "mandatory"),
        ("production", {"EMAIL_HOST": "", "SIGNUP_CONFIRMED": ""}, "mandatory"),
        ("production", {"EMAIL_HOST": "mail.example.org"}, "mandatory"),
        ("production", {"EMAIL_HOST": "mail.example.org", "SIGNUP_CONFIRMED": "false"}, "optional"),
        ("local", {"EMAIL_HOST": "mail.example.org"}, "optional"),
        ("local", {"SIGNUP_CONFIRMED": "true"}, "mandatory"),
    ],
)
def test_it_is_so_in_every_deployment_that_does_not_say_otherwise(
    settings_of: str, given: dict[str, str], wanted: str
) -> None:
    usual = {
        name: value for name, value in os.environ.items() if name not in {"EMAIL_HOST", "SIGNUP_CONFIRMED"}
    }
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from config.settings import {settings_of} as one; print(one.ACCOUNT_EMAIL_VERIFICATION)",
        ],
        env=usual | {"SECRET_KEY": "x"} | given, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout.strip() == wanted
