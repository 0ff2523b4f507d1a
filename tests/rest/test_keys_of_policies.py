"""Every route under /api with a key that reads and is limited to some policies:
what is of another policy does not exist, and what is of the whole tenant is refused."""

from dataclasses import replace
from typing import Any

import pytest
from django.urls import URLPattern

from apps.accounts.models import Role
from apps.adapters.models import Policy
from apps.keys import rest
from apps.keys.models import ApiKey
from apps.keys.services import create_key, set_policies
from config.urls_api import urlpatterns
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.rest.conftest import Api, member
from tests.rest.test_foreign_ids import BODIES, METHODS, everything, ids_of
from tests.rest.test_rest import refused

OF_A_POLICY = {
    *("policies", "versions", "moves", "sessions", "turns", "feedback", "judgements", "samples", "runs"),
    *("drift-readings", "drift-crossings", "memory"),
}
OF_THE_TENANT = {
    *("tenant", "metrics", "presets", "judging", "members", "invitations", "keys", "exports", "deletions"),
    *("rubrics", "opt-outs", "webhooks", "deliveries", "views"),
}
ROUTES = {
    str(one.pattern): one.callback
    for one in urlpatterns
    if isinstance(one, URLPattern) and str(one.pattern) not in ("", "openapi.json")
}


def limited(rows: Rows, *policies: Policy) -> Api:
    """Return who asks with a key of the owner that reads, limited to these policies."""
    asked = [policy.pk for policy in policies]
    _, secret = create_key(tenant=rows.tenant, user=rows.user, name="bi", scopes=["read"], policies=asked)
    return Api(secret, rows.user)


def kind_of(route: str) -> str:
    return route.partition("/")[0]


def reads(route: str) -> bool:
    view: Any = ROUTES[route]
    return "get" in view.actions if getattr(view, "actions", None) else hasattr(view.view_class, "get")


@pytest.fixture
def coder(acme: Rows) -> Policy:
    """Return another policy of the tenant, which has nothing."""
    with tenant_scope(acme.tenant.pk):
        return Policy.objects.create(name="coder", base_model="tiny")


def test_every_route_is_of_a_policy_or_of_the_tenant() -> None:
    assert {kind_of(route) for route in ROUTES} == OF_A_POLICY | OF_THE_TENANT
    assert not OF_A_POLICY & OF_THE_TENANT
    assert len(ROUTES) == 65


def test_what_is_of_another_policy_is_nowhere_to_be_found(acme: Rows, coder: Policy) -> None:
    asking, ids = limited(acme, coder), ids_of(acme)
    asking.get("policies")  # the first notes when the key was used
    before = everything(acme)
    for route in ROUTES:
        kind = kind_of(route)
        path = route.replace("<uuid:pk>", str(ids.get(kind)))
        for method in METHODS:
            body = BODIES.get(route.rpartition("/")[2], {"name": "x", "role": "owner"})
            answer = asking.ask(method, path, None if method == "GET" else body)
            told = (method, route, answer.content)
            if method != "GET" or kind in OF_THE_TENANT:
                assert answer.status_code == 403, told
            elif not reads(route):
                assert answer.status_code == 405, told
            elif route != path:
                assert answer.status_code == 404, told
                assert str(acme.policy.pk) not in answer.content.decode(), told
            else:
                found = answer.json()["results"]
                assert [one["id"] for one in found] == ([str(coder.pk)] if kind == "policies" else []), told
    assert everything(acme) == before


def test_what_is_of_its_policies_is_there_as_for_any_key(acme: Rows, coder: Policy) -> None:
    asking, anybody, ids = limited(acme, acme.policy), member(acme.tenant, Role.OWNER), ids_of(acme)
    seen = 0
    for route in ROUTES:
        kind = kind_of(route)
        if kind not in OF_A_POLICY or not reads(route):
            continue
        path = route.replace("<uuid:pk>", str(ids.get(kind)))
        mine, theirs = asking.get(path), anybody.get(path)
        if path == "policies":
            theirs["results"] = [one for one in theirs["results"] if one["id"] != str(coder.pk)]
        assert mine == theirs, route
        assert mine.get("results") != [], route  # there was something to be seen
        seen += 1
    assert seen == 28


def test_no_filter_leads_around_it(acme: Rows, coder: Policy) -> None:
    asking, ids = limited(acme, coder), ids_of(acme)
    for query in (
        f"sessions?policy={acme.policy.pk}",
        f"sessions?user={acme.user.pk}",
        f"turns?session={ids['sessions']}",
        f"turns?policy={acme.policy.pk}",
        f"judgements?turn={ids['turns']}",
        f"feedback?turn={ids['turns']}",
        f"samples?run={ids['runs']}",
        f"versions?policy={acme.policy.pk}",
        f"runs?policy={acme.policy.pk}",
        f"moves?policy={acme.policy.pk}",
        f"drift-readings?run={ids['runs']}",
        f"memory?policy={acme.policy.pk}",
    ):
        assert asking.get(query)["results"] == [], query


def test_the_limit_of_now_holds(acme: Rows, coder: Policy) -> None:
    asking = limited(acme, coder)
    with tenant_scope(acme.tenant.pk):
        key = ApiKey.objects.get(name="bi")

    def named() -> list[str]:
        return [one["name"] for one in asking.get("policies")["results"]]

    assert named() == ["coder"]
    for policies, names in (
        ([acme.policy.pk], ["default"]),
        (None, ["coder", "default"]),
        ([coder.pk], ["coder"]),
    ):
        set_policies(tenant_id=acme.tenant.pk, key_id=key.pk, policies=policies, actor="user:x")
        assert named() == names
    with tenant_scope(acme.tenant.pk):
        coder.delete()
    assert named() == []  # and not every policy again
    assert asking.ask("GET", f"policies/{acme.policy.pk}").status_code == 404


def test_what_is_of_the_whole_tenant_says_why(acme: Rows, coder: Policy) -> None:
    answer = limited(acme, coder).ask("GET", "tenant")
    refused(answer, 403, "forbidden")
    assert answer.json()["detail"] == (
        "This key is limited to some policies, and this is of the whole tenant. Ask with a key of all policies."
    )


def test_a_role_bounds_it_too(acme: Rows) -> None:
    viewer = member(acme.tenant, Role.VIEWER, scopes=("read",))
    with tenant_scope(acme.tenant.pk):
        key = ApiKey.objects.get(user=viewer.user)
    set_policies(tenant_id=acme.tenant.pk, key_id=key.pk, policies=[acme.policy.pk], actor="user:x")
    assert len(viewer.get("versions")["results"]) == 2
    assert viewer.ask("GET", "sessions").status_code == 403


def test_it_writes_nothing_whatever_it_may(
    acme: Rows, coder: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres keeps no key that manages and is limited; if there were one, it would change nothing."""
    asking, known = limited(acme, coder), rest.authenticate
    monkeypatch.setattr(
        rest, "authenticate", lambda header: replace(known(header), scopes=frozenset({"read", "manage"}))
    )
    assert asking.get("policies")["results"][0]["name"] == "coder"
    for method, path, body in (
        ("PATCH", f"policies/{coder.pk}", {"temperature": 1.5}),
        ("POST", "policies", {"name": "another"}),
        ("PATCH", f"policies/{coder.pk}/memory", {"in_prompt": False}),
        ("POST", "runs", {"policy": str(acme.policy.pk)}),
    ):
        refused(asking.ask(method, path, body), 403, "forbidden")
