"""What people are sent: each mail in the house's words, with what was done, what to do, and whom to ask."""

import re
from pathlib import Path
from typing import Any

import allauth
import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import mail
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import Mail, Role, User
from apps.accounts.services import create_tenant, set_role
from apps.dashboard import entrance
from kernel.tenancy import system_scope
from tests.mails import away, back, sent

PASSWORD = "a password of some length"
ASK = "Attune at testserver. Questions? Ask whoever runs this installation."
NOTICES = {
    "account/email/password_changed": (
        "Your password was changed",
        "The password of your account was changed.",
    ),
    "account/email/password_set": (
        "Your account has a password now",
        "A password was set for your account, which had none.",
    ),
    "account/email/password_reset": (
        "A new password was set",
        "A new password was set for your account, by a link that was sent to an address of yours.",
    ),
    "account/email/email_changed": (
        "Mails go to another address",
        "Mails of your account go to new@example.org from now on, and no longer to old@example.org.",
    ),
    "account/email/email_confirm": ("An address was confirmed", "An address of your account was confirmed."),
    "account/email/email_deleted": (
        "An address was taken out",
        "old@example.org is no address of your account any more.",
    ),
    "mfa/email/totp_activated": (
        "Your account asks for a code now",
        "An authenticator app was added to your account.",
    ),
    "mfa/email/totp_deactivated": (
        "Your account asks for no code any more",
        "The authenticator app was switched off.",
    ),
    "mfa/email/recovery_codes_generated": (
        "New recovery codes",
        "New recovery codes were made for your account. Those before sign nobody in any more.",
    ),
    "mfa/email/webauthn_added": ("A security key was added", "A security key was added to your account."),
    "mfa/email/webauthn_removed": (
        "A security key was taken out",
        "A security key was taken out of your account.",
    ),
    "socialaccount/email/account_connected": (
        "R&D signs you in now",
        "An account at R&D was linked to yours. It signs you in from now on.",
    ),
    "socialaccount/email/account_disconnected": (
        "R&D signs you in no more",
        "The account at R&D is not linked to yours any more.",
    ),
}
ASKED_FOR = {
    "account/email/email_confirmation": "Is this your address?",
    "account/email/email_confirmation_signup": "Welcome: is this your address?",
    "account/email/password_reset_key": "A new password",
    "account/email/unknown_account": "No account with this address",
    "account/email/account_already_exists": "There is an account with this address already",
    "account/email/login_code": "ABC-123 is your code",
    "account/email/password_reset_code": "ABC-123 is your code for a new password",
}


@pytest.fixture
def eve(db: None, valkey: object) -> User:
    del db, valkey
    cache.clear()
    with system_scope("tests"):
        user = User.objects.create_user("eve@example.org", PASSWORD)
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    return user


@pytest.fixture
def client(eve: User) -> Client:
    found = Client(headers={"User-Agent": "Lynx/2.9"})
    found.post("/accounts/login/", {"login": eve.email, "password": PASSWORD})
    sent()
    mail.outbox.clear()
    return found


def the_mail(subject: str) -> str:
    """Return the text of the only mail that was sent, which has that subject."""
    (one,) = sent()
    assert one.subject == f"[Attune] {subject}"
    assert not getattr(one, "alternatives", [])
    body = str(one.body)
    assert body.endswith(f"\n\n{ASK}")
    return body


@pytest.mark.parametrize("prefix", NOTICES)
def test_each_change_is_told_with_when_and_from_where(visited: Any, eve: User, prefix: str) -> None:
    subject, said = NOTICES[prefix]
    about = {
        "from_email": "old@example.org",
        "to_email": "new@example.org",
        "deleted_email": "old@example.org",
    }
    visited.send_notification_mail(prefix, eve, {**about, "provider": "R&D"})
    body = the_mail(subject)
    assert body.startswith(said)
    assert re.search(r"It was done \d{4}-\d\d-\d\d \d\d:\d\d UTC from 127\.0\.0\.1, with Lynx/2\.9\.", body)
    assert "If not, somebody else is in your account" in body
    assert "http://testserver/accounts/password/reset/" in body
    assert "http://testserver/accounts/sessions/" in body


@pytest.mark.parametrize("prefix", ASKED_FOR)
def test_each_mail_that_was_asked_for_says_what_to_do_and_what_if_not(
    visited: Any, eve: User, prefix: str
) -> None:
    link = "http://testserver/there?a=1&b=2"
    about = {"user": eve, "code": "ABC-123"} | dict.fromkeys(
        ("activate_url", "password_reset_url", "signup_url"), link
    )
    visited.send_mail(prefix, eve.email, about)
    body = the_mail(ASKED_FOR[prefix])
    assert re.search(r"(If it was not you|If you asked for none), do nothing", body)
    wanted = "ABC-123" if prefix.endswith("_code") else link
    assert f"\n\n{wanted}\n\n" in body  # on a line of its own, as it is


def test_no_mail_is_left_in_somebody_elses_words() -> None:
    """Every mail of allauth's parts that are installed has a text and a subject here."""
    ours = Path(settings.BASE_DIR) / "frontend" / "templates"
    stock = Path(next(iter(allauth.__path__))) / "templates"
    wanted = sorted(
        str(path.relative_to(stock))
        for part in ("account", "mfa", "socialaccount", "usersessions")
        for kind in ("email", "messages")
        for path in stock.glob(f"{part}/{kind}/*.txt")
        if "phone" not in path.name
    )
    assert len(wanted) > 40
    assert [name for name in wanted if not (ours / name).is_file()] == []
    told = {name.removesuffix("_subject.txt") for name in wanted if name.endswith("_subject.txt")}
    assert told == {*NOTICES, *ASKED_FOR}


def test_signing_up_asks_whose_the_address_is(db: None, valkey: object) -> None:
    sent = Client().post(
        "/accounts/signup/", {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
    )
    assert sent.status_code == 302
    body = the_mail("Welcome: is this your address?")
    link = re.search(r"http://testserver(/accounts/confirm-email/\S+)\n", body)
    assert link is not None
    assert Client().get(link[1]).status_code == 200


def test_a_link_that_is_sent_again_names_the_account(client: Client, eve: User) -> None:
    added = client.post("/accounts/email/", {"action_add": "", "email": "second@example.org"})
    assert added.status_code == 302
    body = the_mail("Is this your address?")
    assert body.startswith("Somebody gave second@example.org as an address of the account eve@example.org.")


def test_a_lost_password_comes_back_by_a_link(eve: User) -> None:
    Client().post("/accounts/password/reset/", {"email": eve.email})
    link = re.search(r"http://testserver(/accounts/password/reset/key/\S+)\n", the_mail("A new password"))
    assert link is not None
    assert Client().get(link[1], follow=True).status_code == 200


def test_an_address_that_nobody_has_is_told_that(eve: User) -> None:
    Client().post("/accounts/password/reset/", {"email": "nobody@example.org"})
    body = the_mail("No account with this address")
    assert "http://testserver/accounts/signup/" in body


def test_a_code_is_sent_to_who_is_asked_once_more(client: Client) -> None:
    form = client.get("/accounts/reauthenticate/code/").context["form"]
    ((chosen, _),) = form.fields["recipient"].choices
    page = client.post("/accounts/reauthenticate/code/", {"recipient": chosen})
    assert page["Location"] == "/accounts/reauthenticate/code/confirm/"
    (one,) = sent()
    code = one.subject.removeprefix("[Attune] ").removesuffix(" is your code")
    assert f"\n\n{code}\n\n" in one.body
    assert client.post("/accounts/reauthenticate/code/confirm/", {"code": code}).status_code == 302


def test_a_changed_password_is_told_of_though_the_mail_server_is_away(
    client: Client, eve: User, settings: Any
) -> None:
    away(settings)
    change = {"oldpassword": PASSWORD, "password1": f"{PASSWORD}, new", "password2": f"{PASSWORD}, new"}
    assert client.post("/accounts/password/change/", change).status_code == 302
    with system_scope("tests"):
        eve.refresh_from_db()
    assert eve.check_password(f"{PASSWORD}, new")
    assert sent() == []
    back(settings)
    assert the_mail("Your password was changed").startswith("The password of your account was changed.")


def test_signing_up_is_whole_though_the_mail_server_is_away(eve: User, settings: Any) -> None:
    del eve
    away(settings)
    browser = Client()
    asked = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
    assert browser.post("/accounts/signup/", asked).status_code == 302
    assert browser.get("/")["Location"] == "/t/new/"
    assert sent() == []
    with system_scope("tests"):
        (row,) = Mail.objects.all()
    assert (row.state, row.attempts) == ("pending", 1)
    assert row.reason.startswith("ConnectionRefusedError")
    assert "confirm-email" not in row.sealed
    back(settings)
    assert "/accounts/confirm-email/" in the_mail("Welcome: is this your address?")


def test_a_sign_up_that_breaks_leaves_nothing(eve: User, monkeypatch: pytest.MonkeyPatch) -> None:
    del eve

    def broken(*given: Any, **named: Any) -> None:
        raise RuntimeError("no room for a tenant")

    monkeypatch.setattr(entrance, "found_tenant", broken)
    asked = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
    assert Client(raise_request_exception=False).post("/accounts/signup/", asked).status_code == 500
    with system_scope("tests"):
        assert not User.objects.filter(email="new@example.org").exists()
        assert not EmailAddress.objects.filter(email="new@example.org").exists()
        assert not Mail.objects.exists()


def test_an_invitation_waits_for_the_mail_server(eve: User, settings: Any) -> None:
    with system_scope("tests"):
        tenant = create_tenant(slug="acme", name="Acme", actor="system:tests")
    set_role(tenant_id=tenant.pk, user=eve, role=Role.OWNER, actor="system:tests")
    away(settings)
    browser = Client()
    browser.force_login(eve)
    page = browser.post("/t/acme/invitations", {"email": "g@example.org", "role": "member"}, follow=True)
    assert "A mail is on its way to g@example.org." in page.content.decode()
    assert sent() == []
    back(settings)
    (one,) = sent()
    link = re.search(r"http://testserver(/invitations/\S+)", str(one.body))
    assert link is not None
    assert Client().get(link[1]).status_code == 200


def test_mails_name_whom_the_installation_names(visited: Any, eve: User, settings: Any) -> None:
    settings.OPERATOR_CONTACT = "ops@example.org\nBcc: x"
    visited.send_mail("account/email/login_code", eve.email, {"code": "1"})
    assert sent()[0].body.endswith("Questions? Ask ops@example.org Bcc: x.")
