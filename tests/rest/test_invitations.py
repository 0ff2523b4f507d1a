"""Asking people to join through /api: who may, up to which role, and that the link stands in the mail alone."""

import re
from typing import Any

import pytest

from apps.accounts import invitations
from apps.accounts.models import Invitation, Membership, Role, User
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.mails import sent
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused


def emails(rows: Rows) -> set[str]:
    with tenant_scope(rows.tenant.pk):
        return set(Invitation.objects.filter(accepted_at=None).values_list("email", flat=True))


def test_somebody_is_asked_joins_and_is_asked_no_more(acme: Rows, owner: Api) -> None:
    made = owner.ask("POST", "invitations", {"email": "New@Example.org", "role": "viewer"})
    assert made.status_code == 201
    invitation = made.json()
    assert (invitation["email"], invitation["role"]) == ("new@example.org", "viewer")
    assert invitation["inviter"] == str(acme.user.pk)
    assert owner.get("invitations")["results"][0] == invitation
    assert owner.get(f"invitations/{invitation['id']}") == invitation
    (letter,) = sent()
    assert letter.to == ["new@example.org"]
    found = re.search(r"http://testserver(/\S+)", str(letter.body))
    assert found is not None
    token = found[1].rstrip("/").rpartition("/")[2]
    assert token not in made.content.decode()
    with system_scope("tests"):
        guest = User.objects.create_user("new@example.org")
    assert invitations.accept(token=token, user=guest).role == Role.VIEWER
    assert emails(acme) == {"guest@acme.example"}
    refused(owner.ask("GET", f"invitations/{invitation['id']}"), 404, "not_found")
    refused(owner.ask("POST", "invitations", {"email": "new@example.org", "role": "viewer"}), 409, "conflict")


def test_asked_again_there_is_one_invitation_and_a_new_link(acme: Rows, owner: Api) -> None:
    first = owner.ask("POST", "invitations", {"email": "a@example.org", "role": "viewer"}).json()
    again = owner.ask("POST", "invitations", {"email": "a@example.org", "role": "admin"}).json()
    assert (again["id"], again["role"]) == (first["id"], "admin")
    assert len(sent()) == 2
    assert sent()[0].body != sent()[1].body


def test_taken_back_its_link_does_nothing(acme: Rows, owner: Api) -> None:
    at = f"invitations/{owner.get('invitations')['results'][0]['id']}"
    assert owner.ask("DELETE", at).status_code == 204
    assert emails(acme) == set()
    refused(owner.ask("DELETE", at), 404, "not_found")
    with tenant_scope(acme.tenant.pk):
        assert AuditEntry.objects.filter(action="member.uninvite").count() == 1


def test_nobody_gives_a_role_above_their_own(acme: Rows, owner: Api) -> None:
    admin = member(acme.tenant, Role.ADMIN)
    asked = {"email": "boss@example.org", "role": "owner"}
    refused(admin.ask("POST", "invitations", asked), 403, "forbidden", "role")
    assert emails(acme) == {"guest@acme.example"}
    assert sent() == []
    assert admin.ask("POST", "invitations", asked | {"role": "admin"}).status_code == 201
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(user=admin.user).update(role=Role.MEMBER)
    assert [one["stands"] for one in owner.get("invitations")["results"]] == [False, True]


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER])
def test_who_does_not_manage_neither_sees_nor_asks(acme: Rows, role: Role) -> None:
    asking = member(acme.tenant, role)
    refused(asking.ask("GET", "invitations"), 403, "forbidden")
    refused(asking.ask("POST", "invitations", {"email": "x@example.org", "role": "viewer"}), 403, "forbidden")
    assert emails(acme) == {"guest@acme.example"}


def test_a_key_that_reads_asks_nobody(acme: Rows) -> None:
    reading = member(acme.tenant, Role.OWNER, scopes=("read",))
    assert len(reading.get("invitations")["results"]) == 1
    refused(
        reading.ask("POST", "invitations", {"email": "x@example.org", "role": "viewer"}),
        403,
        "permission_denied",
    )
    assert sent() == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "nobody", "role": "viewer"}, "email"),
        ({"email": "a" * 250 + "@b.example", "role": "viewer"}, "email"),
        ({"email": "a@b.example\nBcc: c@d.example", "role": "viewer"}, "email"),
        ({"email": "a@b.example"}, "role"),
        ({"email": "a@b.example", "role": "operator"}, "role"),
        ({"email": "a@b.example", "role": "viewer", "tenant": "globex"}, "tenant"),
    ],
)
def test_what_is_wrong_is_named(acme: Rows, owner: Api, body: dict[str, Any], field: str) -> None:
    refused(owner.ask("POST", "invitations", body), 400, "invalid_input", field)
    assert emails(acme) == {"guest@acme.example"}
