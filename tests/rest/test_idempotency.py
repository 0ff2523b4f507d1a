"""The same POST twice under one `Idempotency-Key` is done once, on every route of /api that takes one."""

import contextlib
import json
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps.accounts.models import Role
from apps.adapters import services as adapters
from apps.adapters.models import Policy
from apps.judging.models import OptOut
from apps.keys import services as keys
from apps.keys.models import ApiKey
from apps.keys.services import create_key
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.errors import Conflict
from kernel.models import AuditEntry, Wish
from kernel.rest import wishes
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_foreign_ids import everything, ids_of
from tests.rest.test_rest import refused

DESCRIPTION = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
ONCE = {"Idempotency-Key": "once"}
# what is asked: a body made of the tenant's ids; None where there is none
BODIES: dict[str, Callable[[Rows], Any]] = {
    "deletions": lambda rows: {"session": str(rows.session.pk)},
    "deliveries/{id}/replay": lambda rows: None,
    "exports": lambda rows: None,
    "invitations": lambda rows: {"email": "new@example.org", "role": "viewer"},
    "keys": lambda rows: {"name": "ci", "scopes": ["chat"]},
    "keys/{id}/revoke": lambda rows: None,
    "keys/{id}/rotate": lambda rows: {"overlap_s": 60},
    "memory": lambda rows: {"policy": str(rows.policy.pk), "text": "Answer in Dutch."},
    "opt-outs": lambda rows: {"user": str(rows.user.pk)},
    "policies": lambda rows: {"name": "coder"},
    "policies/{id}/point": lambda rows: {"version": 0},
    "rubrics": lambda rows: {"text": "Be brief."},
    "runs": lambda rows: {"policy": str(rows.policy.pk)},
    "runs/{id}/cancel": lambda rows: None,
    "runs/{id}/resume": lambda rows: None,
    "turns/{id}/feedback": lambda rows: {"score": -1, "correction": "my secret words"},
    "views": lambda rows: {"name": "bad ones", "filters": {"judged": "bad"}},
    "webhooks": lambda rows: {"url": "https://example.org/hook", "events": ["run.failed"]},
    "webhooks/{id}/rotate": lambda rows: None,
    "webhooks/{id}/test": lambda rows: None,
}
SHOWS_A_SECRET = {"keys", "keys/{id}/rotate", "webhooks", "webhooks/{id}/rotate"}


def asked(rows: Rows, route: str) -> tuple[str, Any]:
    """Return path and body of a POST, after making that there is something to do."""
    ids = ids_of(rows)
    with system_scope("tests"):
        if route == "opt-outs":
            OptOut.objects.filter(tenant=rows.tenant).delete()
        Sample.objects.filter(pk=rows.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
        if route.endswith("/cancel"):
            rows.run = TrainingRun.objects.create(tenant=rows.tenant, policy=rows.policy, trigger="threshold")
        if route.endswith("/resume"):
            rows.run = TrainingRun.objects.create(
                tenant=rows.tenant,
                policy=rows.policy,
                trigger="threshold",
                state=RunState.CANCELLED,
                finished_at=timezone.now(),
            )
    kind = route.partition("/")[0]
    key = rows.run.pk if kind == "runs" else ids[kind]
    return route.replace("{id}", str(key)), BODIES[route](rows)


def test_every_post_is_among_them_and_describes_the_header() -> None:
    described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))["paths"]
    posts = {path.removeprefix("/api/"): one["post"] for path, one in described.items() if "post" in one}
    assert set(posts) == set(BODIES)
    for operation in posts.values():
        assert "Idempotency-Key" in [one["name"] for one in operation["parameters"]]


@pytest.mark.parametrize("route", sorted(BODIES))
def test_a_repeated_post_makes_one(acme: Rows, owner: Api, route: str) -> None:
    path, body = asked(acme, route)
    first = owner.ask("POST", path, body, **ONCE)
    assert first.status_code in {200, 201, 202}, first.content
    assert "Idempotent-Replayed" not in first.headers
    before, n_audited = everything(acme), audited(acme)
    again = owner.ask("POST", path, body, **ONCE)
    assert (everything(acme), audited(acme)) == (before, n_audited)
    if route in SHOWS_A_SECRET:
        refused(again, 409, "secret_shown_once", "Idempotency-Key")
        thing = next(value for name, value in first.json().items() if name != "secret")
        assert again.json()["made"] == thing["id"]
        assert thing["id"] in again.json()["detail"]
        assert first.json()["secret"] not in again.content.decode()
    else:
        assert (again.status_code, again.json()) == (first.status_code, first.json())
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers.get("Location") == first.headers.get("Location")


def audited(rows: Rows) -> int:
    with system_scope("look"):
        return AuditEntry.objects.filter(tenant_id=rows.tenant.pk).count()


def test_neither_what_was_said_nor_what_was_answered_is_kept(acme: Rows, owner: Api) -> None:
    path, body = asked(acme, "turns/{id}/feedback")
    owner.ask("POST", path, body, **ONCE)
    made = owner.ask("POST", "keys", {"name": "ci", "scopes": ["chat"]}, **{"Idempotency-Key": "other"})
    with tenant_scope(acme.tenant.pk):
        rows = list(Wish.objects.exclude(idempotency_key="kept").values())
    assert [sorted(row) for row in rows] == 2 * [
        [
            *("created_at", "id", "idempotency_key", "made", "request_mac", "shows_secret", "status"),
            *("tenant_id", "user_id"),
        ]
    ]
    assert "secret words" not in str(rows)
    assert made.json()["secret"].split("-", 2)[2] not in str(rows)
    assert {row["shows_secret"] for row in rows} == {True, False}


def test_a_key_is_of_one_request_and_of_one_person(acme: Rows, owner: Api) -> None:
    made = owner.ask("POST", "views", {"name": "one", "filters": {"judged": "bad"}}, **ONCE)
    for path, body in (
        ("views", {"name": "two", "filters": {"judged": "bad"}}),
        ("policies", {"name": "one"}),
        (f"keys/{acme.key.pk}/revoke", None),
    ):
        refused(owner.ask("POST", path, body, **ONCE), 409, "idempotency_key_reused", "Idempotency-Key")
    # the same in another order is the same
    again = owner.ask("POST", "views", {"filters": {"judged": "bad"}, "name": "one"}, **ONCE)
    assert again.json()["id"] == made.json()["id"]
    admin = member(acme.tenant, Role.ADMIN)
    theirs = admin.ask("POST", "views", {"name": "mine", "filters": {"judged": "bad"}}, **ONCE)
    assert theirs.status_code == 201
    assert theirs.json()["id"] != made.json()["id"]
    for wrong in ("", "k" * 256):
        refused(
            owner.ask("POST", "views", {}, **{"Idempotency-Key": wrong}),
            400,
            "invalid_input",
            "Idempotency-Key",
        )


def test_what_was_refused_may_be_asked_for_again(acme: Rows, owner: Api) -> None:
    wish = {"policy": str(acme.policy.pk)}
    refused(owner.ask("POST", "runs", wish, **ONCE), 409, "no_samples")
    with tenant_scope(acme.tenant.pk):
        assert not Wish.objects.filter(idempotency_key="once").exists()
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    assert owner.ask("POST", "runs", wish, **ONCE).status_code == 201
    nobody = member(acme.tenant, Role.VIEWER)
    refused(nobody.ask("POST", "runs", wish, **ONCE), 403, "forbidden")


def test_a_repeat_shows_what_became_of_it_or_that_it_is_gone(acme: Rows, owner: Api) -> None:
    wish = {"name": "one", "filters": {"judged": "bad"}}
    made = owner.ask("POST", "views", wish, **ONCE).json()
    owner.ask("PATCH", f"views/{made['id']}", {"name": "another"})
    assert owner.ask("POST", "views", wish, **ONCE).json()["name"] == "another"
    owner.ask("DELETE", f"views/{made['id']}")
    gone = owner.ask("POST", "views", wish, **ONCE)
    refused(gone, 409, "made_is_gone", "Idempotency-Key")
    assert gone.json()["made"] == made["id"]


def test_wishes_are_forgotten_after_a_week(acme: Rows, owner: Api) -> None:
    for name in ("old", "young"):
        owner.ask("POST", "keys", {"name": name, "scopes": ["chat"]}, **{"Idempotency-Key": name})
    week = timezone.now() - timedelta(days=7)
    with system_scope("tests"):
        Wish.objects.filter(idempotency_key="old").update(created_at=week - timedelta(seconds=1))
        Wish.objects.filter(idempotency_key="young").update(created_at=week + timedelta(minutes=1))
        assert wishes.prune() == 1
        assert not Wish.objects.filter(idempotency_key="old").exists()
    body = {"name": "old", "scopes": ["chat"]}
    assert owner.ask("POST", "keys", body, **{"Idempotency-Key": "old"}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_two_at_once_stand_in_line(valkey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del valkey
    rows = fill("acme")
    _, secret = create_key(tenant=rows.tenant, user=rows.user, name="owner", scopes=("manage",))
    owner, both = Api(secret, rows.user), threading.Barrier(2, timeout=5)
    make, answers = keys.create_key, []

    def slowly(**asked_for: Any) -> Any:
        made = make(**asked_for)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1)  # a second one that got here too would let both through
        return made

    monkeypatch.setattr(keys, "create_key", slowly)

    def ask() -> None:
        answers.append(owner.ask("POST", "keys", {"name": "ci", "scopes": ["chat"]}, **ONCE).status_code)
        connection.close()

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for one in askers:
        one.start()
    for one in askers:
        one.join()
    assert sorted(answers) == [201, 409]
    with tenant_scope(rows.tenant.pk):
        assert ApiKey.objects.filter(name="ci").count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_dies_half_way_leaves_nothing_behind(valkey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del valkey
    rows = fill("acme")
    _, secret = create_key(tenant=rows.tenant, user=rows.user, name="owner", scopes=("manage",))
    owner = Api(secret, rows.user)
    with monkeypatch.context() as broken:
        broken.setattr(wishes, "keep", lambda *_, **__: 1 / 0)
        assert owner.ask("POST", "policies", {"name": "coder"}, **ONCE).status_code == 500
    with tenant_scope(rows.tenant.pk):
        assert not Policy.objects.filter(name="coder").exists()
        assert not Wish.objects.filter(idempotency_key="once").exists()
    assert owner.ask("POST", "policies", {"name": "coder"}, **ONCE).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_what_waits_for_engines_holds_no_transaction(valkey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del valkey
    rows = fill("acme")
    _, secret = create_key(tenant=rows.tenant, user=rows.user, name="owner", scopes=("manage",))
    held: list[bool] = []

    def refuse(**_: Any) -> None:
        held.append(connection.in_atomic_block)
        raise Conflict("an engine refuses it")

    monkeypatch.setattr(adapters, "move_pointer", refuse)
    answer = Api(secret, rows.user).ask("POST", f"policies/{rows.policy.pk}/point", {"version": 0}, **ONCE)
    refused(answer, 409, "conflict")
    assert held == [False]


def test_a_row_without_an_answer_is_in_no_transaction_but_its_own(acme: Rows) -> None:
    del acme
    with system_scope("tests"), pytest.raises(Exception, match="wish_has_made_what_it_answered"):
        Wish.objects.filter(idempotency_key="kept").update(made=uuid.uuid4())
