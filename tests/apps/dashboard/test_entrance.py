"""Signing up, being invited, and the second factor."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.test import Client

from apps.accounts.forms import SignupForm
from apps.accounts.invitations import accept, invite
from apps.accounts.models import Invitation, Membership, Role, Tenant, User
from apps.accounts.services import change_role, create_user, remove_member
from apps.adapters.models import Policy
from apps.dashboard import entrance
from apps.keys.services import authenticate
from kernel.errors import Forbidden, NotFound, Unauthenticated
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill, operator
from tests.apps.dashboard.conftest import browser, member, text_of
from tests.mails import sent

pytestmark = pytest.mark.usefixtures("db", "valkey")
PASSWORD = "correct horse battery staple"


def sign_up(client: Client, email: str, organisation: str = "") -> Any:
    return client.post(
        "/accounts/signup/",
        {"email": email, "password1": PASSWORD, "password2": PASSWORD, "organisation": organisation},
    )


def invited(client: Client, email: str, role: str = "member") -> str:
    """Invite somebody; returns the path of the link in the mail."""
    client.post("/t/acme/invitations", {"email": email, "role": role})
    link = re.search(r"http://testserver(/invitations/\S+)", str(sent()[-1].body))
    assert link is not None
    return link[1]


def test_from_signing_up_to_a_key_that_works() -> None:
    client = Client()
    assert sign_up(client, "eve@example.org", "Eve & Co.")["Location"] == "/"
    assert client.get("/")["Location"] == "/t/eve-co/"
    seen = text_of(client, "/t/eve-co/")
    assert "You are owner of eve-co." in seen
    assert "Ask it something" in seen
    page = client.post("/t/eve-co/keys", {"name": "laptop", "scopes": ["chat"]}).content.decode()
    secret = re.search(r'class="secret">(at-[^<]+)<', page)
    assert secret is not None
    caller = authenticate(f"Bearer {secret[1]}")
    with tenant_scope(caller.tenant_id):
        assert [policy.name for policy in Policy.objects.all()] == ["default"]
        assert {"tenant.create", "member.add", "policy.create", "key.create"} <= set(
            AuditEntry.objects.values_list("action", flat=True)
        )


@pytest.mark.parametrize(
    ("organisation", "slug"),
    [("", "bob"), ("1st & Only", "t-1st-only"), ("日本", "team"), ("<b>", "b"), ("x" * 99, "x" * 30)],
)
def test_a_tenants_slug_is_made_of_its_name(organisation: str, slug: str) -> None:
    client = Client()
    sign_up(client, "bob@example.org", organisation)
    assert client.get("/")["Location"] == f"/t/{slug}/"


def test_a_name_that_is_taken_gets_a_slug_of_its_own() -> None:
    for number in range(2):
        sign_up(Client(), f"bob{number}@example.org", "Twins")
    with system_scope("look"):
        slugs = sorted(Tenant.objects.filter(name="Twins").values_list("slug", flat=True))
    assert len(slugs) == 2
    assert slugs[0] == "twins"
    assert re.fullmatch(r"twins-[0-9a-f]{6}", slugs[1])


def test_a_taken_address_makes_nothing_and_does_not_say_so() -> None:
    sign_up(Client(), "bob@example.org")
    sign_up(Client(), "bob@example.org", "Other")
    with system_scope("look"):
        assert User.objects.filter(email="bob@example.org").count() == 1
        assert not Tenant.objects.filter(name="Other").exists()


def test_closed_sign_up_lets_in_who_was_invited(settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    acme = fill("acme")
    assert "By invitation only" in Client().get("/accounts/signup/").content.decode()
    link = invited(browser(acme.user), "guest@example.org")
    guest = Client()
    assert "asks <b>guest@example.org</b> to join as member" in guest.get(link).content.decode()
    assert sign_up(guest, "guest@example.org").status_code == 302
    assert guest.get("/")["Location"] == "/t/acme/"
    assert "You are member of acme." in text_of(guest, "/t/acme/")
    assert guest.get(link)["Location"] == "/t/acme/"  # it works once, and leads back who used it
    assert Client().get(link).status_code == 404


def confirm(client: Client) -> None:
    """Open the newest link for an address."""
    link = re.search(r"http://testserver(/accounts/confirm-email/\S+)", str(sent()[-1].body))
    assert link is not None
    client.post(link[1])


def sign_in(client: Client, email: str) -> Any:
    return client.post("/accounts/login/", {"login": email, "password": PASSWORD})


def test_nobody_is_in_before_the_address_is_confirmed_where_that_is_mandatory(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client = Client()
    assert sign_up(client, "eve@example.org", "Eve & Co.")["Location"] == "/accounts/confirm-email/"
    assert "Look into your mail" in text_of(client, "/accounts/confirm-email/")
    for path in ("/", "/t/eve-co/", "/t/eve-co/keys"):
        assert client.get(path)["Location"].startswith("/accounts/login/"), path
    assert sign_in(client, "eve@example.org")["Location"] == "/accounts/confirm-email/"
    assert client.get("/t/eve-co/")["Location"].startswith("/accounts/login/")
    confirm(client)
    sign_in(client, "eve@example.org")
    assert client.get("/")["Location"] == "/t/eve-co/"
    assert "You are owner of eve-co." in text_of(client, "/t/eve-co/")


@pytest.mark.parametrize("verification", ["mandatory", "optional"])
def test_whoever_came_by_an_invitation_showed_the_address_already(
    acme: Rows, settings: Any, verification: str
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    guest = Client()
    guest.get(invited(browser(acme.user), "guest@example.org"))
    brought = len(sent())
    assert sign_up(guest, "guest@example.org")["Location"] == "/"
    assert guest.get("/")["Location"] == "/t/acme/"
    assert EmailAddress.objects.get(email="guest@example.org").verified
    assert len(sent()) == brought


@pytest.mark.parametrize("verification", ["mandatory", "optional"])
def test_an_invitation_shows_no_other_address(acme: Rows, settings: Any, verification: str) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    other = Client()
    other.get(invited(browser(acme.user), "guest@example.org"))
    sign_up(other, "other@example.org")
    assert not EmailAddress.objects.get(email="other@example.org").verified
    assert not EmailAddress.objects.filter(email="guest@example.org").exists()
    with system_scope("look"):
        assert User.objects.get(email="other@example.org").memberships.get().tenant.slug == "other"
    with tenant_scope(acme.tenant.pk):
        assert Invitation.objects.get(email="guest@example.org").accepted_at is None


def test_the_first_operator_signs_in_without_a_mail(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    with system_scope("tests"):
        create_user(email="ada@example.org", password=PASSWORD, operator=True, actor="system:test")
    assert sign_in(Client(), "ada@example.org")["Location"] == "/"
    assert sent() == []


def test_an_invitation_is_for_one_address(acme: Rows) -> None:
    link = invited(browser(acme.user), "guest@example.org", "admin")
    with system_scope("tests"):
        thief = User.objects.create_user("thief@example.org", PASSWORD)
        guest = User.objects.create_user("guest@example.org", PASSWORD)
    browser(thief).post(link)
    with tenant_scope(acme.tenant.pk):
        assert not Membership.objects.filter(user=thief).exists()
    assert browser(guest).post(link)["Location"] == "/t/acme/"
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.get(user=guest).role == Role.ADMIN
        assert Invitation.objects.get(email="guest@example.org").accepted_at is not None


def test_an_invitation_that_was_used_leads_who_used_it_in_and_nobody_else(acme: Rows) -> None:
    link = invited(browser(acme.user), "guest@example.org")
    with system_scope("tests"):
        guest = User.objects.create_user("guest@example.org", PASSWORD)
    client = browser(guest)
    for _ in range(2):  # a double click
        assert client.post(link)["Location"] == "/t/acme/"
    assert client.get(link)["Location"] == "/t/acme/"
    token = link.rpartition("/")[2]
    assert accept(token=token, user=guest).tenant == acme.tenant
    with tenant_scope(acme.tenant.pk):
        assert AuditEntry.objects.filter(action="member.join").count() == 1
    assert Client().get(link).status_code == 404
    assert browser(acme.user).post(link).status_code == 404
    with tenant_scope(acme.tenant.pk):
        gone = Membership.objects.get(user=guest).pk
    remove_member(tenant_id=acme.tenant.pk, membership_id=gone, actor="system:test")
    assert client.post(link).status_code == 404
    with pytest.raises(NotFound):
        accept(token=token, user=guest)


@pytest.mark.parametrize("confirmed", [False, True])
def test_an_address_that_is_taken_at_that_moment_is_a_taken_one(
    settings: Any, monkeypatch: pytest.MonkeyPatch, *, confirmed: bool
) -> None:
    """As of a double click: both looked at it before either made it."""
    settings.SIGNUP_CONFIRMED = confirmed
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory" if confirmed else "optional"
    looked = SignupForm.clean

    def taken_since(form: SignupForm) -> Any:
        found = looked(form)
        with system_scope("tests"):
            User.objects.create_user("ada@example.org", PASSWORD)
        return found

    monkeypatch.setattr(SignupForm, "clean", taken_since)
    client = Client()
    answer = sign_up(client, "Ada@Example.org", "Lovelace")
    assert answer.status_code == 302
    page = client.get(answer["Location"]).content.decode()
    assert ("If it is yours, sign in" in page) is not confirmed
    assert "_auth_user_id" not in client.session
    with system_scope("tests"):
        assert User.objects.count() == 1
        assert not Tenant.objects.exists()


def test_a_name_that_is_taken_at_that_moment_gets_another_slug(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "_free_slug", lambda name: "acme")
    sign_up(Client(), "ada@example.org", "Acme")
    with system_scope("tests"):
        made = Membership.objects.select_related("tenant").get(user__email="ada@example.org").tenant
    assert re.fullmatch(r"acme-[0-9a-f]{6}", made.slug)


def test_asked_again_the_old_link_ends_and_one_that_was_taken_back_too(acme: Rows) -> None:
    client = browser(acme.user)
    first, second = invited(client, "guest@example.org"), invited(client, "Guest@Example.org")
    assert Client().get(first).status_code == 404
    assert Client().get(second).status_code == 200
    with tenant_scope(acme.tenant.pk):
        row = Invitation.objects.get(email="guest@example.org")
    client.post(f"/t/acme/invitations/{row.pk}")
    assert Client().get(second).status_code == 404


def test_who_may_invite_whom(acme: Rows) -> None:
    admin, someone = browser(member(acme.tenant, Role.ADMIN)), browser(member(acme.tenant, Role.MEMBER))
    body = {"email": "x@example.org", "role": "member"}
    assert someone.post("/t/acme/invitations", body).status_code == 403
    assert admin.post("/t/acme/invitations", {**body, "role": "owner"}).status_code == 404
    assert admin.post("/t/acme/invitations", body).status_code == 302
    assert browser(acme.user).post("/t/acme/invitations", {**body, "email": "x"}).status_code == 200
    assert len(sent()) == 1


def test_nobody_is_asked_in_as_more_than_who_asks(acme: Rows) -> None:
    admin = member(acme.tenant, Role.ADMIN)
    with pytest.raises(Forbidden) as refused:
        invite(tenant=acme.tenant, email="x@example.org", role=Role.OWNER, inviter=admin, link="{token}")
    assert refused.value.field == "role"
    viewer = member(acme.tenant, Role.VIEWER)
    with pytest.raises(Forbidden):
        invite(tenant=acme.tenant, email="x@example.org", role=Role.VIEWER, inviter=viewer, link="{token}")
    assert sent() == []


@pytest.mark.parametrize(
    ("role", "became", "opens"),
    [
        ("owner", Role.ADMIN, False),
        ("member", Role.ADMIN, True),
        ("member", Role.MEMBER, False),
        ("viewer", None, False),
    ],
)
def test_an_invitation_ends_with_the_role_of_who_asked(
    acme: Rows, role: str, became: Role | None, opens: bool
) -> None:
    inviter = member(acme.tenant, Role.OWNER)
    link = invited(browser(inviter), "second-address@example.org", role)
    with tenant_scope(acme.tenant.pk):
        row = Membership.objects.get(user=inviter)
    if became is None:
        remove_member(tenant_id=acme.tenant.pk, membership_id=row.pk, actor="system:test")
    else:
        change_role(tenant_id=acme.tenant.pk, membership_id=row.pk, role=became, actor="system:test")
    with system_scope("tests"):
        again = User.objects.create_user("second-address@example.org", PASSWORD)
    assert Client().get(link).status_code == (200 if opens else 404)
    browser(again).post(link)
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.filter(user=again).exists() is opens
    seen = text_of(browser(acme.user), "/t/acme/members")
    assert ("ended: who asked may no longer" in seen) is not opens


def test_an_invitations_token_is_stored_as_a_hash_and_in_no_audit_row(acme: Rows) -> None:
    token = invited(browser(acme.user), "guest@example.org").rpartition("/")[2]
    with tenant_scope(acme.tenant.pk):
        assert token not in str(list(Invitation.objects.values()))
        assert token not in str(list(AuditEntry.objects.values()))


def test_the_console_asks_for_a_second_factor_where_it_must(settings: Any) -> None:
    client = browser(operator())
    assert client.get("/console/").status_code == 200
    settings.CONSOLE_REQUIRES_MFA = True
    assert client.get("/console/")["Location"] == "/accounts/2fa/"
    Authenticator.objects.create(
        user=User.objects.get(is_staff=True),
        type=Authenticator.Type.TOTP,
        data={"secret": "JBSWY3DPEHPK3PXP"},
    )
    assert client.get("/console/").status_code == 200


def test_signing_in_asks_for_the_second_factor() -> None:
    with system_scope("tests"):
        user = User.objects.create_user("ada@example.org", PASSWORD)
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    client = Client()
    answer = client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    assert answer["Location"] == "/accounts/2fa/authenticate/"
    assert client.get("/").status_code == 302  # not in yet
    assert (
        "Code: this is not it, or it was used already."
        in client.post("/accounts/2fa/authenticate/", {"code": "000000"}).content.decode()
    )
    code = format_hotp_value(hotp_value("JBSWY3DPEHPK3PXP", next(yield_hotp_counters_from_time())))
    assert client.post("/accounts/2fa/authenticate/", {"code": code})["Location"] == "/"


def test_the_pages_of_an_account_are_whole(acme: Rows) -> None:
    client = browser(acme.user)
    for path in ("email/", "password/change/", "2fa/", "sessions/"):
        page = client.get(f"/accounts/{path}")
        assert page.status_code == 200, path
        html = page.content.decode()
        assert 'href="/accounts/2fa/"' in html
        assert " style=" not in html
        assert not re.search(r"\son\w+=", html)


def test_somebody_taken_out_has_keys_that_do_nothing(acme: Rows) -> None:
    link = invited(browser(acme.user), "guest@example.org")
    with system_scope("tests"):
        guest = User.objects.create_user("guest@example.org", PASSWORD)
    theirs = browser(guest)
    theirs.post(link)
    page = theirs.post("/t/acme/keys", {"name": "mine", "scopes": ["chat"]}).content.decode()
    secret = re.search(r'class="secret">(at-[^<]+)<', page)
    assert secret is not None
    with tenant_scope(acme.tenant.pk):
        row = Membership.objects.get(user=guest)
    browser(acme.user).post(f"/t/acme/members/{row.pk}", {"wish": "remove"})
    with pytest.raises(Unauthenticated):
        authenticate(f"Bearer {secret[1]}")
    assert theirs.get("/t/acme/").status_code == 404
