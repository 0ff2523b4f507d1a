"""One more tenant for somebody signed in, and leaving one: the last owner stays."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Membership, Role, Tenant, User
from apps.adapters.models import Policy
from apps.dashboard import tenants
from apps.keys.services import authenticate, create_key
from kernel.errors import Unauthenticated
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, member, text_of

NEW = "/tenants/new"
LEAVE = "/t/acme/leave"


def own(user: User) -> list[tuple[str, str]]:
    with system_scope("look"):
        rows = Membership.objects.filter(user=user).order_by("created_at", "id")
        return [(row.tenant.slug, row.role) for row in rows.select_related("tenant")]


@pytest.mark.parametrize("role", [*Role])
def test_whoever_is_signed_in_makes_a_tenant_of_their_own(acme: Rows, role: Role) -> None:
    user = member(acme.tenant, role)
    client = browser(user)
    assert f'href="{NEW}"' in client.get("/t/acme/").content.decode()
    assert "You own it." in text_of(client, NEW)
    assert client.post(NEW, {"name": " Side & Co. "})["Location"] == "/t/side-co/"
    assert own(user) == [("acme", role.value), ("side-co", "owner")]
    assert "You are owner of side-co." in text_of(client, "/t/side-co/")
    with system_scope("look"):
        made = Tenant.objects.get(slug="side-co")
    with tenant_scope(made.pk):
        assert [policy.name for policy in Policy.objects.all()] == ["default"]
        assert {"tenant.create", "member.add", "policy.create"} == set(
            AuditEntry.objects.values_list("action", flat=True)
        )
    assert browser(acme.user).get("/t/side-co/").status_code == 404


def test_who_belongs_to_none_begins_there(db: None) -> None:
    del db
    with system_scope("tests"):
        user = User.objects.create_user("eve@example.org", "a password of some length")
    client = browser(user)
    page = client.get("/").content.decode()
    assert "Or make one of your own." in page
    assert f'href="{NEW}"' in page
    assert "To the first page" in text_of(client, NEW)
    assert client.post(NEW, {"name": "Eve"})["Location"] == "/t/eve/"
    assert client.get("/")["Location"] == "/t/eve/"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "Name: this is empty. Fill it in."),
        ("  ", "Name: this is empty. Fill it in."),
        ("x" * 121, "Name: at most 120 characters, and this has 121. Make it shorter."),
        ("a\x00b", "Take it out."),
    ],
)
def test_a_name_that_is_none_is_refused_in_words(acme: Rows, name: str, said: str) -> None:
    page = browser(acme.user).post(NEW, {"name": name})
    assert page.status_code == 200
    assert said in page.content.decode()
    assert own(acme.user) == [("acme", "owner")]


def test_where_sign_up_is_closed_nobody_makes_one(acme: Rows, settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    client = browser(acme.user)
    assert NEW not in client.get("/t/acme/").content.decode()
    for answer in (client.get(NEW), client.post(NEW, {"name": "Side"})):
        assert answer.status_code == 403
        assert "By invitation only" in answer.content.decode()
    assert own(acme.user) == [("acme", "owner")]
    with system_scope("tests"):
        nobody = User.objects.create_user("eve@example.org", "a password of some length")
    assert NEW not in browser(nobody).get("/").content.decode()


def test_nobody_owns_more_than_some(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenants, "MOST_OWNED", 2)
    client = browser(acme.user)
    assert client.post(NEW, {"name": "Side"}).status_code == 302
    page = client.post(NEW, {"name": "Third"})
    assert (
        "You own 2 tenants, which is the most. Make somebody else owner of one, then leave it."
        in page.content.decode()
    )
    assert own(acme.user) == [("acme", "owner"), ("side", "owner")]
    guest = browser(member(acme.tenant, Role.ADMIN))  # who owns none may
    assert guest.post(NEW, {"name": "Third"}).status_code == 302


def test_a_visitor_signs_in_first(db: None) -> None:
    del db
    assert Client().get(NEW)["Location"] == f"/accounts/login/?next={NEW}"
    assert Client().post(NEW, {"name": "x"})["Location"] == f"/accounts/login/?next={NEW}"
    with system_scope("look"):
        assert not Tenant.objects.exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER, Role.ADMIN])
def test_whoever_leaves_sees_nothing_more_and_has_keys_that_do_nothing(acme: Rows, role: Role) -> None:
    user = member(acme.tenant, role)
    _, secret = create_key(tenant=acme.tenant, user=user, name="mine", scopes=("read",))
    client = browser(user)
    assert f'href="{LEAVE}"' in client.get("/t/acme/settings").content.decode()
    asked = text_of(client, LEAVE)
    assert "Your keys that work 1" in asked
    assert ("ask an owner or admin to delete it" in asked) is (role != Role.ADMIN)
    assert own(user) == [("acme", role.value)]  # looking changes nothing
    page: Any = client.post(LEAVE, follow=True)
    assert page.redirect_chain == [("/", 302)]
    assert "You have left ACME." in page.content.decode()
    assert own(user) == []
    assert client.get("/t/acme/").status_code == 404
    with pytest.raises(Unauthenticated):
        authenticate(f"Bearer {secret}")
    with tenant_scope(acme.tenant.pk):
        told = AuditEntry.objects.get(action="member.remove")
    assert (told.actor, told.target) == (f"user:{user.pk}", f"user:{user.pk}")


def test_the_last_owner_stays(acme: Rows) -> None:
    client = browser(acme.user)
    page = client.get(LEAVE).content.decode()
    assert "You are its only owner" in page
    assert '<button class="danger"' not in page
    answer: Any = client.post(LEAVE, follow=True)
    assert answer.redirect_chain == [(LEAVE, 302)]
    assert "a tenant keeps at least one owner" in answer.content.decode()
    assert own(acme.user) == [("acme", "owner")]
    member(acme.tenant, Role.OWNER)
    assert "You are its only owner" not in client.get(LEAVE).content.decode()
    assert client.post(LEAVE)["Location"] == "/"
    assert own(acme.user) == []


def test_who_left_goes_on_in_another_tenant(acme: Rows) -> None:
    other = fill("globex")
    with tenant_scope(acme.tenant.pk):
        Membership.objects.create(user=other.user, role=Role.ADMIN)
    client = browser(other.user)
    page: Any = client.post(LEAVE, follow=True)
    assert page.redirect_chain == [("/", 302), ("/t/globex/", 302)]
    assert "You have left ACME." in page.content.decode()
    assert client.get(LEAVE).status_code == 404
    assert client.post(LEAVE).status_code == 404
    assert own(other.user) == [("globex", "owner")]
    assert own(acme.user) == [("acme", "owner")]
