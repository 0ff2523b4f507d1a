"""Signing in through Google and GitHub: who gets in, as whom, and who does not.

Their answers come from a server here.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.google.views import GoogleOAuth2Adapter
from django.test import Client

from apps.accounts.models import Membership, Tenant, User
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser
from tests.apps.dashboard.test_entrance import PASSWORD, invited, sign_up
from tests.mails import sent

pytestmark = pytest.mark.usefixtures("db", "valkey")


@dataclass
class Provider:
    """What the other side says of whoever comes back from it."""

    uid: str = "4711"
    email: str = "eve@example.org"
    verified: bool = True
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> Any:
        """Return what the other side answers at a path."""
        self.asked.append(path)
        if path == "/google/token":
            claims = {
                "iss": "https://accounts.google.com",
                "aud": "our-id",
                "iat": int(time.time()),
                "exp": int(time.time()) + 300,
                "sub": self.uid,
                "email": self.email,
                "email_verified": self.verified,
                "name": "Eve",
            }
            return {"access_token": "t", "expires_in": 300, "id_token": jwt.encode(claims, "k" * 32)}
        return {
            "/github/token": {"access_token": "t", "token_type": "bearer", "scope": "user:email"},
            "/github/user": {"id": int(self.uid), "login": "eve", "name": "Eve", "email": None},
            "/github/emails": [{"email": self.email, "verified": self.verified, "primary": True}],
        }[path]


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Register the installation with both, which are a server here."""
    said = Provider()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.dumps(said.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(GoogleOAuth2Adapter, "access_token_url", f"{base}/google/token")
    monkeypatch.setattr(GitHubOAuth2Adapter, "access_token_url", f"{base}/github/token")
    monkeypatch.setattr(GitHubOAuth2Adapter, "profile_url", f"{base}/github/user")
    monkeypatch.setattr(GitHubOAuth2Adapter, "emails_url", f"{base}/github/emails")
    settings.SOCIALACCOUNT_PROVIDERS = {
        name: {"APPS": [{"client_id": "our-id", "secret": "our-secret"}]} for name in ("google", "github")
    }
    yield said
    server.shutdown()
    server.server_close()


def come_back(client: Client, through: str, process: str = "login") -> Any:
    """Go to the other side and come back from it; returns the last answer."""
    away = client.post(f"/accounts/{through}/login/?process={process}")["Location"]
    state = parse_qs(urlsplit(away).query)["state"][0]
    return client.get(f"/accounts/{through}/login/callback/", {"code": "c", "state": state}, follow=True)


def linked() -> list[tuple[str, str, str]]:
    return sorted(SocialAccount.objects.values_list("provider", "uid", "user__email"))


def test_nothing_is_offered_where_nothing_is_registered() -> None:
    for page in ("/accounts/login/", "/accounts/signup/"):
        answer = Client().get(page)
        assert "Go on with" not in answer.content.decode()
        assert "form-action 'self'" in re.split("; ", answer["Content-Security-Policy"])
    assert "Linked accounts" not in browser(person()).get("/accounts/email/").content.decode()
    for provider_ in ("google", "github"):
        assert Client().post(f"/accounts/{provider_}/login/").status_code == 404


def person(email: str = "eve@example.org", password: str | None = PASSWORD) -> User:
    with system_scope("tests"):
        return User.objects.create_user(email, password)


@pytest.mark.parametrize(
    ("through", "away"), [("google", "https://accounts.google.com/"), ("github", "https://github.com/")]
)
@pytest.mark.parametrize("verification", ["mandatory", "optional"])
def test_a_verified_address_makes_an_account_with_a_tenant(
    provider: Provider, settings: Any, through: str, away: str, verification: str
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = settings.SOCIALACCOUNT_EMAIL_VERIFICATION = verification
    client = Client()
    page = client.get("/accounts/login/")
    assert f'action="/accounts/{through}/login/?process=login"' in page.content.decode()
    assert away.rstrip("/") in page["Content-Security-Policy"]
    left = client.post(f"/accounts/{through}/login/?process=login")
    assert left["Location"].startswith(away)
    assert "our-secret" not in left["Location"]

    seen = come_back(client, through)
    assert seen.redirect_chain[-1][0] == "/t/eve/"
    assert "You are owner of eve." in seen.content.decode()
    assert linked() == [(through, "4711", "eve@example.org")]
    address = EmailAddress.objects.get(email="eve@example.org")
    assert (address.verified, address.primary) == (True, True)
    assert not SocialToken.objects.exists()
    assert not User.objects.get(email="eve@example.org").has_usable_password()

    again = come_back(Client(), through)
    assert again.redirect_chain[-1][0] == "/t/eve/"
    with system_scope("look"):
        assert (User.objects.count(), Tenant.objects.count()) == (1, 1)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("through", ["google", "github"])
def test_an_address_is_no_way_into_somebodys_account(
    provider: Provider, through: str, verified: bool
) -> None:
    sign_up(Client(), "eve@example.org", "Eve & Co.")
    EmailAddress.objects.filter(email="eve@example.org").update(verified=True)
    provider.verified = verified
    client = Client()
    come_back(client, through)
    assert client.get("/")["Location"].startswith("/accounts/login/")
    assert linked() == []
    with system_scope("look"):
        assert (User.objects.count(), Tenant.objects.count()) == (1, 1)


def test_an_unverified_address_stays_unverified(provider: Provider) -> None:
    provider.verified = False
    come_back(Client(), "github")
    assert not EmailAddress.objects.filter(verified=True).exists()


def test_an_unverified_address_waits_for_the_link_where_that_is_mandatory(
    provider: Provider, settings: Any
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = settings.SOCIALACCOUNT_EMAIL_VERIFICATION = "mandatory"
    provider.verified = False
    client = Client()
    assert come_back(client, "github").redirect_chain[-1][0] == "/accounts/confirm-email/"
    assert client.get("/")["Location"].startswith("/accounts/login/")
    link = re.search(r"http://testserver(/accounts/confirm-email/\S+)", str(sent()[-1].body))
    assert link is not None
    client.post(link[1])
    assert come_back(client, "github").redirect_chain[-1][0] == "/t/eve/"


@pytest.mark.parametrize("verified", [True, False])
def test_who_was_invited_needs_no_second_link_through_the_other_side(
    provider: Provider, acme: Rows, settings: Any, verified: bool
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = settings.SOCIALACCOUNT_EMAIL_VERIFICATION = "mandatory"
    provider.email, provider.verified = "guest@example.org", verified
    guest = Client()
    guest.get(invited(browser(acme.user), "guest@example.org"))
    assert come_back(guest, "google").redirect_chain[-1][0] == "/t/acme/"
    assert EmailAddress.objects.get(email="guest@example.org").verified


def test_who_was_invited_joins_through_the_other_side_too(
    provider: Provider, acme: Rows, settings: Any
) -> None:
    settings.SIGNUP_OPEN = False
    come_back(Client(), "google")
    assert linked() == []  # nobody asked them
    provider.email = "guest@example.org"
    link = invited(browser(acme.user), "guest@example.org")
    guest = Client()
    guest.get(link)
    assert come_back(guest, "google").redirect_chain[-1][0] == "/t/acme/"
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.get(user__email="guest@example.org").role == "member"


def test_an_account_is_linked_and_unlinked(provider: Provider, acme: Rows) -> None:
    provider.email = "another@example.org"
    client = browser(acme.user)
    page = come_back(client, "google", "connect").content.decode()
    assert linked() == [("google", "4711", acme.user.email)]
    assert ("Unlink" in page, "Link GitHub" in page) == (True, True)
    assert come_back(Client(), "google").redirect_chain[-1][0] == "/t/acme/"

    other = browser(person("mallory@example.org"))
    come_back(other, "google", "connect")  # what is linked to one account is not linked to a second
    assert linked() == [("google", "4711", acme.user.email)]
    row = SocialAccount.objects.get()
    other.post("/accounts/3rdparty/", {"account": row.pk})
    assert linked() == [("google", "4711", acme.user.email)]

    client.post("/accounts/3rdparty/", {"account": row.pk})
    assert linked() == []


def test_the_last_way_in_is_not_unlinked(provider: Provider) -> None:
    client = Client()
    come_back(client, "github")
    answer = client.post("/accounts/3rdparty/", {"account": SocialAccount.objects.get().pk})
    assert 'role="alert"' in answer.content.decode()
    assert linked() == [("github", "4711", "eve@example.org")]


def test_who_comes_back_without_having_left_is_nobody(provider: Provider) -> None:
    client = Client()
    answer = client.get("/accounts/google/login/callback/", {"code": "c", "state": "made-up"})
    assert "That did not work" in answer.content.decode()
    assert provider.asked == []
    assert linked() == []
