"""Saved views through /api: the same rules as on the page, each refusal at its field."""

from typing import Any

import pytest

from apps.accounts.models import Role
from apps.dashboard.models import MOST, SavedView
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused

UNHAPPY = {"name": "unhappy today", "filters": {"judged": "bad", "within": "1d"}}


def test_a_view_is_saved_changed_and_deleted(acme: Rows, owner: Api) -> None:
    made = owner.ask("POST", "views", UNHAPPY)
    assert made.status_code == 201
    view = made.json()
    assert {name: view[name] for name in ("name", "user", "shared", "filters")} == {
        **UNHAPPY,
        "user": str(acme.user.pk),
        "shared": False,
    }
    at = f"views/{view['id']}"
    filters = {"policy": str(acme.policy.pk), "kind": "live", "person": "end-acme"}
    changed = owner.ask("PATCH", at, {"filters": filters, "shared": True})
    assert (changed.status_code, changed.json()["filters"], changed.json()["shared"]) == (200, filters, True)
    assert owner.get(at) == changed.json()
    assert [one["name"] for one in owner.get("views")["results"]][:1] == ["unhappy today"]
    assert owner.ask("DELETE", at).status_code == 204
    assert owner.ask("GET", at).status_code == 404


def test_a_member_has_views_of_their_own_and_reads_the_shared_ones(acme: Rows, owner: Api) -> None:
    somebody = member(acme.tenant, Role.MEMBER)
    assert somebody.get("views")["results"] == []
    shared = owner.ask("POST", "views", UNHAPPY | {"shared": True}).json()
    assert [one["id"] for one in somebody.get("views")["results"]] == [shared["id"]]
    at = f"views/{shared['id']}"
    refused(somebody.ask("PATCH", at, {"name": "mine"}), 403, "forbidden")
    refused(somebody.ask("DELETE", at), 403, "forbidden")
    refused(somebody.ask("POST", "views", UNHAPPY | {"shared": True}), 403, "forbidden")
    own = somebody.ask("POST", "views", UNHAPPY).json()
    refused(owner.ask("PATCH", f"views/{own['id']}", {"name": "ours"}), 404, "not_found")
    reading = member(acme.tenant, Role.OWNER, scopes=("read",))
    refused(reading.ask("POST", "views", UNHAPPY), 403, "permission_denied")
    with tenant_scope(acme.tenant.pk):
        assert sorted(SavedView.objects.filter(name="unhappy today").values_list("shared", flat=True)) == [
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"filters": {"kind": "live"}}, 400, "invalid_input", "name"),
        ({"name": "v"}, 400, "invalid_input", "filters"),
        ({"name": "v", "filters": {}}, 400, "invalid_input", "filters.policy"),
        ({"name": "v", "filters": {"kind": "x"}}, 400, "invalid_input", "filters.kind"),
        ({"name": "v", "filters": {"kind": "live", "mood": "low"}}, 400, "invalid_input", "filters.mood"),
        ({"name": "v", "filters": {"person": 7}}, 400, "invalid_input", "filters.person"),
        ({"name": "v", "filters": {"within": "2d"}}, 400, "invalid_input", "filters.within"),
        ({"name": "v", "filters": {"person": "nobody"}}, 400, "invalid_input", "filters.person"),
        ({"name": "x" * 61, "filters": {"kind": "live"}}, 400, "invalid_input", "name"),
        ({"name": "v", "filters": {"kind": "live"}, "shared": "yes"}, 400, "invalid_input", "shared"),
    ],
)
def test_what_is_no_view_is_refused(
    owner: Api, body: dict[str, Any], status: int, code: str, field: str
) -> None:
    refused(owner.ask("POST", "views", body), status, code, field)


def test_another_tenants_policy_is_no_filter(owner: Api) -> None:
    theirs = {"name": "v", "filters": {"policy": str(fill("globex").policy.pk)}}
    refused(owner.ask("POST", "views", theirs), 400, "invalid_input", "filters.policy")


def test_names_are_taken_and_views_are_few(acme: Rows, owner: Api) -> None:
    for number in range(MOST - 1):  # one is there
        assert owner.ask("POST", "views", UNHAPPY | {"name": f"v{number}"}).status_code == 201
    refused(owner.ask("POST", "views", UNHAPPY | {"name": "v"}), 409, "too_many")
    view = owner.get("views")["results"][0]
    refused(owner.ask("PATCH", f"views/{view['id']}", {"name": "V0"}), 409, "name_taken")
    refused(owner.ask("PATCH", f"views/{view['id']}", {}), 400, "invalid_input", "name")
