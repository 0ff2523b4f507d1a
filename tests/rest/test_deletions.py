"""Deletions through /api: asked for once, followed, and told with what had learned from what is gone."""

import uuid
from typing import Any

import pytest

from apps.accounts.models import EndUser, Role
from apps.conversations.models import Session, Turn
from apps.governance.erasure import work
from apps.governance.models import Erasure, ErasureState, Subject
from apps.memory.models import Evidence
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused


def opened(rows: Rows) -> int:
    """Return how many deletions are open."""
    with tenant_scope(rows.tenant.pk):
        return Erasure.objects.filter(state=ErasureState.OPEN).count()


def work_on(rows: Rows, answer: Any) -> None:
    with tenant_scope(rows.tenant.pk):
        work.erase(erasure_id=uuid.UUID(answer.json()["id"]))


def test_a_session_is_deleted_and_followed(acme: Rows, owner: Api) -> None:
    asked = owner.ask("POST", "deletions", {"session": str(acme.session.pk)})
    assert asked.status_code == 202
    made = asked.json()
    assert asked["Location"] == f"http://testserver/api/deletions/{made['id']}"
    assert (made["subject"], made["subject_id"]) == ("session", str(acme.session.pk))
    assert (made["state"], made["turns_total"], made["turns_gone"], made["deleted"]) == ("open", 2, 0, {})
    assert made["actor"].startswith("key:")
    with tenant_scope(acme.tenant.pk):
        assert Turn.objects.count() == 2
        assert Evidence.objects.count() == 0  # no prompt is told of it from now on
        assert AuditEntry.objects.filter(action="data.delete", actor=made["actor"]).count() == 1
    # the same wish while it is open is that one
    assert owner.ask("POST", "deletions", {"session": str(acme.session.pk)}).json()["id"] == made["id"]

    work_on(acme, asked)
    seen = owner.get(f"deletions/{made['id']}")
    assert (seen["state"], seen["turns_gone"], seen["deleted"]["session"]) == ("done", 2, 1)
    assert seen["finished_at"] is not None
    assert seen["learned_from"] == [
        {
            "policy": str(acme.policy.pk),
            "version": str(acme.version.pk),
            "number": 2,
            "served_name": acme.version.served_name,
            "samples": 2,
        }
    ]
    assert owner.get("deletions")["results"][0] == seen
    refused(owner.ask("POST", "deletions", {"session": str(acme.session.pk)}), 404, "not_found", "session")


def test_a_person_goes_by_id_or_by_the_name_that_clients_give(acme: Rows, owner: Api) -> None:
    asked = owner.ask("POST", "deletions", {"end_user": "end-acme"})
    assert (asked.status_code, asked.json()["subject"], asked.json()["turns_total"]) == (202, "end_user", 2)
    own = owner.ask("POST", "deletions", {"user": str(acme.user.pk)})
    assert (own.status_code, own.json()["subject"], own.json()["turns_total"]) == (202, "member", 0)
    work_on(acme, asked)
    with tenant_scope(acme.tenant.pk):
        assert (Session.objects.count(), EndUser.objects.count()) == (0, 0)
    for wish in ({"end_user": "end-acme"}, {"user": str(uuid.uuid4())}, {"session": str(uuid.uuid4())}):
        refused(owner.ask("POST", "deletions", wish), 404, "not_found", next(iter(wish)))


def test_everything_goes_by_the_tenants_slug_and_only_for_owners(acme: Rows, owner: Api) -> None:
    admin = member(acme.tenant, Role.ADMIN)
    refused(admin.ask("POST", "deletions", {"everything": "acme"}), 403, "forbidden")
    for wrong in ("ACME", "globex", "acme-2"):
        refused(owner.ask("POST", "deletions", {"everything": wrong}), 404, "not_found", "everything")
    assert opened(acme) == 0
    asked = owner.ask("POST", "deletions", {"everything": "acme"})
    assert (asked.status_code, asked.json()["subject"], asked.json()["subject_id"]) == (
        202,
        "everything",
        None,
    )
    work_on(acme, asked)
    with tenant_scope(acme.tenant.pk):
        assert Turn.objects.count() == 0
    assert admin.ask("POST", "deletions", {"user": str(acme.user.pk)}).status_code == 202


@pytest.mark.parametrize("wish", ["session", "end_user", "everything"])
def test_a_key_asks_once_also_when_it_is_all_gone(acme: Rows, owner: Api, wish: str) -> None:
    said = {"session": str(acme.session.pk), "end_user": "end-acme", "everything": "acme"}
    named = {"Idempotency-Key": "one"}
    asked = owner.ask("POST", "deletions", {wish: said[wish]}, **named)
    assert asked.status_code == 202
    work_on(acme, asked)
    again = owner.ask("POST", "deletions", {wish: said[wish]}, **named)
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, asked.json()["id"], "done")
    other = next(name for name in said if name != wish)
    refused(
        owner.ask("POST", "deletions", {other: said[other]}, **named),
        409,
        "idempotency_key_reused",
        "Idempotency-Key",
    )
    refused(
        owner.ask("POST", "deletions", {wish: said[wish]}, **{"Idempotency-Key": "x" * 256}),
        400,
        "invalid_input",
    )
    assert opened(acme) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "session"),
        ({"session": "x"}, "session"),
        ({"session": None}, "session"),
        ({"user": 7}, "user"),
        ({"end_user": ""}, "end_user"),
        ({"end_user": "x" * 201}, "end_user"),
        ({"everything": True}, "everything"),
        ({"tenant": "acme"}, "tenant"),
        ({"end_user": "end-acme", "everything": "acme"}, "everything"),
    ],
)
def test_what_is_wrong_is_named_and_deletes_nothing(acme: Rows, owner: Api, body: object, field: str) -> None:
    refused(owner.ask("POST", "deletions", body), 400, "invalid_input", field)
    assert opened(acme) == 0


def test_who_may_not_manage_neither_asks_nor_sees(acme: Rows, owner: Api) -> None:
    looking = member(acme.tenant, Role.OWNER, scopes=("read",))
    for asking in (member(acme.tenant, Role.MEMBER), member(acme.tenant, Role.VIEWER)):
        assert asking.ask("POST", "deletions", {"session": str(acme.session.pk)}).status_code == 403
        assert asking.ask("GET", "deletions").status_code == 403
    assert looking.ask("POST", "deletions", {"session": str(acme.session.pk)}).status_code == 403
    assert len(looking.get("deletions")["results"]) == 1
    assert opened(acme) == 0


def test_a_sweep_by_age_is_among_them(acme: Rows, owner: Api) -> None:
    with tenant_scope(acme.tenant.pk):
        sweep = Erasure.objects.create(
            actor="system:retention",
            subject=Subject.AGED,
            subject_id=acme.policy.pk,
            older_than_days=30,
            turns_total=9,
            deleted={"turn": 4},
            moved_at=acme.session.created_at,
        )
    seen = owner.get(f"deletions/{sweep.pk}")
    assert (seen["subject"], seen["older_than_days"], seen["turns_gone"]) == ("aged", 30, 4)
    for method in ("PUT", "PATCH", "DELETE"):
        assert owner.ask(method, f"deletions/{sweep.pk}", {}).status_code == 405
