"""What /api shows and changes, who may, and how it refuses."""

import base64
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from apps.accounts.models import Membership, Role, Tenant
from apps.accounts.pausing import pause_tenant, resume_tenant
from apps.adapters.models import Policy
from apps.conversations.models import Feedback
from apps.judging.reasons import Reason
from apps.keys.limits import Allowance
from apps.keys.models import ApiKey, Limit
from apps.keys.services import set_limit
from apps.keys.tenant_limit import granted, holding
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.rest.throttle import CallerThrottle
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member


def refused(answer: Any, status: int, code: str, field: str | None = None) -> None:
    """Assert that an answer is a problem (RFC 9457) with these words."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "code", "detail"} <= set(problem)
    assert (problem["status"], problem["code"]) == (status, code)
    if field is not None:
        assert field in [one["field"] for one in problem["errors"]]


def test_without_a_key_or_with_a_wrong_one_it_is_401(acme: Rows) -> None:
    nobody = Client().get("/api/tenant")
    refused(nobody, 401, "not_authenticated")
    assert nobody.headers["WWW-Authenticate"] == "Bearer"
    refused(Api("at-aaaaaaaaaaaaaaaa-wrong", acme.user).ask("GET", "tenant"), 401, "invalid_api_key")


def test_a_key_for_chat_reads_nothing_here(acme: Rows) -> None:
    chatting = member(acme.tenant, Role.OWNER, scopes=("chat",))
    answer = chatting.ask("GET", "tenant")
    refused(answer, 403, "insufficient_scope")
    assert answer.json()["detail"] == (
        "This key lacks the scope `read`, or its person's role does not give it. "
        "Make a key that has it under Keys, or ask an owner for another role."
    )


def test_a_key_that_reads_changes_nothing(acme: Rows) -> None:
    reading = member(acme.tenant, Role.OWNER, scopes=("read",))
    assert reading.get("tenant")["slug"] == "acme"
    refused(reading.ask("PATCH", "tenant", {"name": "Mine"}), 403, "permission_denied")
    with tenant_scope(acme.tenant.pk):
        assert Tenant.objects.get(pk=acme.tenant.pk).name == "ACME"


def test_lists_hold_the_tenants_rows_and_a_members_own(acme: Rows, owner: Api) -> None:
    fill("globex")
    assert [one["id"] for one in owner.get("policies")["results"]] == [str(acme.policy.pk)]
    assert [one["number"] for one in owner.get("versions")["results"]] == [2, 1]
    assert [one["id"] for one in owner.get("sessions")["results"]] == [str(acme.session.pk)]
    assert owner.get("sessions")["results"][0]["turns"] == 2
    assert len(owner.get("turns")["results"]) == 2
    assert len(owner.get("judgements")["results"]) == 2
    assert len(owner.get("samples")["results"]) == 2
    assert [one["state"] for one in owner.get("runs")["results"]] == ["succeeded"]
    assert len(owner.get("feedback")["results"]) == 1

    other = member(acme.tenant, Role.MEMBER)
    for path in ("sessions", "turns", "judgements", "samples", "feedback"):
        assert other.get(path)["results"] == [], path
    assert len(other.get("runs")["results"]) == 1
    assert [one["user"] for one in other.get("keys")["results"]] == [str(other.user.pk)]


def test_a_sample_says_in_words_why_it_teaches_nothing(acme: Rows, owner: Api) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(
            state=SampleState.INELIGIBLE, reason="greedy", run=None, consumed_at=None
        )
    seen = owner.get(f"samples/{acme.sample.pk}")
    assert (seen["reason"], seen["means"]) == ("greedy", Reason.GREEDY.words)
    (other,) = [one for one in owner.get("samples")["results"] if one["id"] != str(acme.sample.pk)]
    assert (other["reason"], other["means"]) == ("", "")


def test_a_keys_limits_are_set_by_who_manages(acme: Rows, owner: Api) -> None:
    mine = member(acme.tenant, Role.MEMBER)
    key = mine.get("keys")["results"][0]["id"]
    refused(mine.ask("PUT", f"keys/{key}/limits", {"concurrent": 9}), 403, "forbidden")
    set_ = owner.ask("PUT", f"keys/{key}/limits", {"concurrent": 2})
    assert (set_.status_code, set_.json()) == (
        200,
        {"requests_per_minute": None, "tokens_per_minute": None, "concurrent": 2},
    )
    refused(owner.ask("PUT", f"keys/{key}/limits", {"concurrent": -1}), 400, "invalid_input", "concurrent")
    with tenant_scope(acme.tenant.pk):
        assert Limit.objects.get(key_id=key).concurrent == 2


def test_a_tenants_limit_is_set_below_what_the_platform_lets_it(
    acme: Rows, owner: Api, settings: Any
) -> None:
    settings.TENANT_LIMITS = {"requests": 100, "tokens": 0, "concurrent": 8}
    nothing = dict.fromkeys(("requests_per_minute", "tokens_per_minute", "concurrent"))
    assert owner.get("tenant/limits") == nothing
    refused(member(acme.tenant, Role.MEMBER).ask("PUT", "tenant/limits", {}), 403, "forbidden")
    for wrong in ({"requests_per_minute": 101}, {"requests_per_minute": 0}, {"concurrent": 9}):
        answer = owner.ask("PUT", "tenant/limits", wrong)
        refused(answer, 400, "invalid_input", next(iter(wrong)))
        assert "at most" in answer.json()["detail"].lower()
    lower = {"requests_per_minute": 100, "tokens_per_minute": 10**9, "concurrent": 1}
    assert owner.ask("PUT", "tenant/limits", lower).json() == lower
    # what the tenant asks of itself is no ratchet, and one number leaves the others
    assert owner.ask("PUT", "tenant/limits", {"concurrent": 8}).json() == {**lower, "concurrent": 8}
    assert owner.ask("PUT", "tenant/limits", {"tokens_per_minute": None}).json() == {
        **lower,
        "tokens_per_minute": None,
        "concurrent": 8,
    }
    set_limit(tenant_id=acme.tenant.pk, key_id=None, actor="system:test", requests_per_minute=500)
    for number in (500, 100, 500):
        assert owner.ask("PUT", "tenant/limits", {"requests_per_minute": number}).status_code == 200
    over = owner.ask("PUT", "tenant/limits", {"requests_per_minute": 501})
    refused(over, 400, "invalid_input", "requests_per_minute")


def test_a_tenant_does_not_lift_what_an_operator_set(acme: Rows, owner: Api, settings: Any) -> None:
    settings.TENANT_LIMITS = {"requests": 12_000, "tokens": 0, "concurrent": 256}
    lent = {"requests_per_minute": 10, "tokens_per_minute": 1000, "concurrent": 2}
    set_limit(tenant_id=acme.tenant.pk, key_id=None, actor="system:test", **lent)
    for name, number in lent.items():
        for wrong in (number + 1, 12_000, 0):
            refused(owner.ask("PUT", "tenant/limits", {name: wrong}), 400, "invalid_input", name)
    assert owner.ask("PUT", "tenant/limits", {"concurrent": 1}).status_code == 200
    with tenant_scope(acme.tenant.pk):
        assert holding(acme.tenant.pk) == Allowance(10, 1000, 1)
    assert owner.ask("PUT", "tenant/limits", dict.fromkeys(lent)).status_code == 200
    with tenant_scope(acme.tenant.pk):
        assert holding(acme.tenant.pk) == granted(acme.tenant.pk) == Allowance(10, 1000, 2)


def test_no_key_is_rotated_into_another_hand(acme: Rows, owner: Api) -> None:
    theirs = next(one["id"] for one in owner.get("keys")["results"] if "manage" in one["scopes"])
    admin = member(acme.tenant, Role.ADMIN)
    answer = admin.ask("POST", f"keys/{theirs}/rotate", {"overlap_s": 60})
    refused(answer, 403, "forbidden")
    assert "by its own person alone" in answer.json()["detail"]
    with tenant_scope(acme.tenant.pk):
        assert ApiKey.objects.filter(user=acme.user).count() == 2
        assert ApiKey.objects.get(pk=theirs).expires_at is None
    assert admin.ask("POST", f"keys/{theirs}/revoke").status_code == 200
    assert owner.ask("GET", "keys").status_code == 401


def test_a_policy_is_made_and_changed_within_its_bounds(acme: Rows, owner: Api) -> None:
    made = owner.ask("POST", "policies", {"name": "coder"})
    assert made.status_code == 201
    assert made.json()["live_version"] == 0
    refused(owner.ask("POST", "policies", {"name": "coder"}), 409, "conflict", "name")
    refused(owner.ask("POST", "policies", {"name": "No Spaces"}), 400, "invalid_input", "name")
    path = f"policies/{made.json()['id']}"
    assert owner.ask("PATCH", path, {"temperature": 1.5}).json()["temperature"] == 1.5
    refused(owner.ask("PATCH", path, {"temperature": 2.5}), 400, "invalid_input", "temperature")
    refused(member(acme.tenant, Role.MEMBER).ask("PATCH", path, {"temperature": 1}), 403, "forbidden")
    with tenant_scope(acme.tenant.pk):
        assert Policy.objects.get(name="coder").temperature == 1.5


def test_a_run_is_asked_for_once_cancelled_and_resumed(acme: Rows, owner: Api) -> None:
    asked = {"policy": str(acme.policy.pk)}
    refused(owner.ask("POST", "runs", asked), 409, "no_samples")
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    wish = {"Idempotency-Key": "k1"}
    run = owner.ask("POST", "runs", asked, **wish)
    assert run.status_code == 201
    assert run.json()["state"] == "queued"
    assert owner.ask("POST", "runs", asked, **wish).json()["id"] == run.json()["id"]
    refused(owner.ask("POST", "runs", asked), 409, "run_under_way")
    refused(
        owner.ask("POST", "runs", asked, **{"Idempotency-Key": "k" * 256}),
        400,
        "invalid_input",
        "Idempotency-Key",
    )
    ended = owner.ask("POST", f"runs/{run.json()['id']}/cancel")
    assert ended.json()["state"] == "cancelled"
    with tenant_scope(acme.tenant.pk):
        assert TrainingRun.objects.filter(state=RunState.CANCELLED).count() == 1
    assert owner.ask("POST", f"runs/{run.json()['id']}/resume").json()["state"] == "queued"


def test_a_paused_tenant_is_read_and_begins_nothing(acme: Rows, owner: Api) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    asked = {"policy": str(acme.policy.pk)}
    run = owner.ask("POST", "runs", asked).json()["id"]
    pause_tenant(tenant_id=acme.tenant.pk, reason="unpaid bills", actor="user:1")
    assert owner.ask("POST", f"runs/{run}/cancel").json()["state"] == "cancelled"
    for path, body in (("runs", asked), (f"runs/{run}/resume", None)):
        answer = owner.ask("POST", path, body)
        refused(answer, 403, "tenant_paused")
        assert (
            answer.json()["detail"]
            == "This tenant is paused: unpaid bills. Ask whoever runs this installation."
        )
    shown = owner.get("tenant")
    assert (shown["pause_reason"], shown["paused_at"] is not None) == ("unpaid bills", True)
    for path in ("sessions", "turns", "runs", f"runs/{run}", "versions", "policies", "samples"):
        owner.get(path)
    refused(owner.ask("PATCH", "tenant", {"pause_reason": ""}), 400, "invalid_input", "pause_reason")
    resume_tenant(tenant_id=acme.tenant.pk, reason="paid", actor="user:1")
    assert owner.ask("POST", f"runs/{run}/resume").json()["state"] == "queued"


def test_feedback_is_given_once_per_idempotency_key(acme: Rows, owner: Api) -> None:
    path = f"turns/{acme.turn.pk}/feedback"
    once = owner.ask("POST", path, {"score": 1}, **{"Idempotency-Key": "k1"})
    again = owner.ask("POST", path, {"score": 1}, **{"Idempotency-Key": "k1"})
    assert (once.status_code, again.json()["id"]) == (201, once.json()["id"])
    refused(owner.ask("POST", path, {"score": 7}), 400, "invalid_input", "score")
    refused(owner.ask("POST", path, {}), 400, "invalid_input", "score")
    with tenant_scope(acme.tenant.pk):
        assert Feedback.objects.filter(score=1).count() == 1


def test_the_last_owner_stays(acme: Rows, owner: Api) -> None:
    member(acme.tenant, Role.ADMIN)
    with tenant_scope(acme.tenant.pk):
        mine = Membership.objects.get(user=acme.user)
        admin = Membership.objects.get(role=Role.ADMIN)
    refused(owner.ask("PATCH", f"members/{mine.pk}", {"role": "viewer"}), 409, "conflict", "role")
    refused(owner.ask("DELETE", f"members/{mine.pk}"), 409, "conflict", "role")
    assert owner.ask("PATCH", f"members/{admin.pk}", {"role": "owner"}).status_code == 200
    assert owner.ask("DELETE", f"members/{mine.pk}").status_code == 204
    refused(owner.ask("GET", "tenant"), 401, "invalid_api_key")  # whose person is gone


def test_a_body_that_is_no_json_is_a_problem(owner: Api) -> None:
    refused(owner.ask("POST", "policies", b"{"), 400, "parse_error")
    refused(owner.ask("POST", "policies", b"[]"), 400, "invalid_input")
    refused(owner.ask("DELETE", "policies"), 405, "method_not_allowed")


def test_a_body_is_read_to_the_letter(acme: Rows, owner: Api) -> None:
    refused(owner.ask("PATCH", "tenant", {"training_enabled": 0}), 400, "invalid_input", "training_enabled")
    refused(owner.ask("PATCH", "tenant", {"training_enable": False}), 400, "invalid_input", "training_enable")
    refused(owner.ask("PATCH", "tenant", {"id": str(acme.tenant.pk)}), 400, "invalid_input", "id")
    refused(owner.ask("PATCH", "tenant", {"name": 7}), 400, "invalid_input", "name")
    refused(owner.ask("PATCH", "tenant", {"name": "a\x00b"}), 400, "invalid_input", "name")
    policy = f"policies/{acme.policy.pk}"
    refused(owner.ask("PATCH", policy, {"temperature": True}), 400, "invalid_input", "temperature")
    refused(owner.ask("PATCH", policy, {"temperature": "1"}), 400, "invalid_input", "temperature")
    assert owner.ask("PATCH", policy, {"temperature": 1}).json()["temperature"] == 1.0
    refused(owner.ask("POST", f"{policy}/point", {"version": "0"}), 400, "invalid_input", "version")
    refused(owner.ask("POST", "keys", {"name": "k", "scopes": [1]}), 400, "invalid_input", "scopes")
    refused(owner.ask("POST", "runs", {"policy": 7}), 400, "invalid_input", "policy")
    said = f"turns/{acme.turn.pk}/feedback"
    refused(owner.ask("POST", said, {"score": "1"}), 400, "invalid_input", "score")
    refused(owner.ask("POST", said, {"score": True}), 400, "invalid_input", "score")
    refused(owner.ask("POST", said, {"score": None}), 400, "invalid_input", "score")
    refused(owner.ask("POST", said, {"score": 1}, **{"Idempotency-Key": "k" * 256}), 400, "invalid_input")
    with tenant_scope(acme.tenant.pk):
        tenant = Tenant.objects.get(pk=acme.tenant.pk)
        assert (tenant.name, tenant.training_enabled) == ("ACME", True)
        assert Feedback.objects.filter(score=1).count() == 0


def test_a_filter_that_says_nothing_is_not_a_wish_for_everything(acme: Rows, owner: Api) -> None:
    for path, field in (
        ("turns?session=", "session"),
        ("sessions?end_user=", "end_user"),
        (f"turns?session={acme.session.pk}&session={acme.session.pk}", "session"),
        ("turns?page_size=0", "page_size"),
        ("turns?page_size=201", "page_size"),
        ("turns?page_size=many", "page_size"),
        ("keys?page_size=1&page_size=2", "page_size"),
    ):
        refused(owner.ask("GET", path), 400, "invalid_input", field)
    assert len(owner.get("turns?page_size=1")["results"]) == 1


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("session=7", "session", "This is no UUID."),
        ("state=gone", "state", "This is none of the choices. Choose once more."),
    ],
)
def test_a_filter_that_is_wrong_is_refused_in_our_words(
    owner: Api, query: str, field: str, words: str
) -> None:
    problem = owner.ask("GET", f"turns?{query}").json()
    assert problem["errors"] == [{"field": field, "detail": words}]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_address_where_nothing_stands_is_a_problem_too(owner: Api, method: str) -> None:
    for path in ("", "turn", "tenant/", "turns/7", "turns/7/feedback", "policies/null/point"):
        refused(owner.ask(method, path), 404, "not_found")
    refused(Client().get("/api/turns/7"), 404, "not_found")


def test_the_description_is_served_as_json(db: None) -> None:
    del db
    assert Client().get("/api/openapi.json").json()["info"]["title"] == "Attune"


def test_cursors_walk_the_whole_list_once(acme: Rows, owner: Api) -> None:
    with system_scope("tests"):
        for number in range(5):
            Policy.objects.create(tenant=acme.tenant, name=f"p{number}", base_model="tiny")
    seen: list[str] = []
    path = "policies?page_size=2"
    while path:
        page = owner.get(path)
        seen += [one["name"] for one in page["results"]]
        path = (page["next"] or "").partition("/api/")[2]
    assert seen == ["p4", "p3", "p2", "p1", "p0", "default"]
    refused(owner.ask("GET", "policies?cursor=cD1qdW5r"), 404, "not_found")  # p=junk
    for moment in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        beyond = base64.b64encode(f"p={quote(moment)}".encode()).decode()
        refused(owner.ask("GET", f"policies?cursor={quote(beyond)}"), 404, "not_found")
    far = base64.b64encode(f"p={quote('1044-12-04T16:38:56+19:41')}".encode()).decode()
    assert owner.get(f"policies?cursor={quote(far)}")["results"] == []


def test_the_rate_of_a_caller_is_limited_and_said(
    acme: Rows, owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallerThrottle, "THROTTLE_RATES", {"api": "2/min"})
    first = owner.ask("GET", "tenant")
    assert (first.headers["RateLimit-Limit"], first.headers["RateLimit-Remaining"]) == ("2", "1")
    assert owner.ask("GET", "tenant").headers["RateLimit-Remaining"] == "0"
    third = owner.ask("GET", "tenant")
    refused(third, 429, "throttled")
    assert 1 <= int(third.headers["Retry-After"]) <= 60
    assert member(acme.tenant, Role.VIEWER).get("tenant")["slug"] == "acme"


def test_a_person_in_the_browser_needs_no_key_but_the_token(acme: Rows) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(acme.user)
    assert browser.get("/api/tenant").json()["slug"] == "acme"
    refused(browser.get("/api/tenant", headers={"X-Tenant": "globex"}), 404, "not_found")
    forged = browser.patch("/api/tenant", {"name": "x"}, content_type="application/json")
    refused(forged, 403, "permission_denied")
    with system_scope("look"):
        assert ApiKey.objects.count() == 1


def test_a_lowered_role_is_seen_at_the_key_and_felt(acme: Rows, owner: Api) -> None:
    asking = member(acme.tenant, Role.ADMIN, scopes=("chat", "manage", "read"))
    key = next(one for one in owner.get("keys")["results"] if one["user"] == str(asking.user.pk))
    assert key["effective_scopes"] == key["scopes"] == ["chat", "manage", "read"]
    assert asking.ask("PATCH", "tenant", {"name": "Mine"}).status_code == 200
    members = {one["user"]: one["id"] for one in owner.get("members")["results"]}
    lowered = owner.ask("PATCH", f"members/{members[str(asking.user.pk)]}", {"role": "viewer"})
    assert lowered.json()["role"] == "viewer"
    answer = asking.ask("PATCH", "tenant", {"name": "Theirs"})
    refused(answer, 403, "permission_denied")
    assert answer.json()["detail"] == (
        "This key may only read: it lacks the scope `manage`, or its person's role does not give it. "
        "Make a key that has it under Keys, or ask an owner for another role."
    )
    assert asking.get("tenant")["name"] == "Mine"
    assert owner.get(f"keys/{key['id']}") == key | {
        "effective_scopes": ["read"],
        "last_used_at": owner.get(f"keys/{key['id']}")["last_used_at"],
    }
    ended = owner.ask("POST", f"keys/{key['id']}/revoke").json()
    assert (ended["scopes"], ended["effective_scopes"]) == (["chat", "manage", "read"], ["read"])


def test_a_key_is_limited_to_policies(acme: Rows, owner: Api) -> None:
    other = fill("globex")
    default = str(acme.policy.pk)
    coder = owner.ask("POST", "policies", {"name": "coder"}).json()["id"]
    asked = {"name": "ci", "scopes": ["chat"], "policies": [default]}
    made = owner.ask("POST", "keys", asked)
    assert (made.status_code, made.json()["key"]["policies"]) == (201, [default])
    path = f"keys/{made.json()['key']['id']}"
    changed = owner.ask("PUT", f"{path}/policies", {"policies": [coder, default]})
    assert (changed.status_code, changed.json()["policies"]) == (200, sorted([coder, default]))
    for wrong, status, code in (
        ([], 400, "invalid_input"),
        (["x"], 400, "invalid_input"),
        ([str(other.policy.pk)], 404, "not_found"),
    ):
        answer = owner.ask("PUT", f"{path}/policies", {"policies": wrong})
        refused(answer, status, code, "policies.0" if wrong == ["x"] else "policies")
    reads = {"name": "r", "scopes": ["read"], "policies": [default]}
    assert owner.ask("POST", "keys", reads).json()["key"]["policies"] == [default]
    manages = {"name": "m", "scopes": ["read", "manage"], "policies": [default]}
    refused(owner.ask("POST", "keys", manages), 400, "invalid_input", "policies")
    whole = owner.ask("POST", "keys", manages | {"policies": None}).json()["key"]["id"]
    refused(
        owner.ask("PUT", f"keys/{whole}/policies", {"policies": [default]}), 400, "invalid_input", "policies"
    )
    assert owner.get(f"keys/{whole}")["policies"] is None
    assert owner.get(path)["policies"] == sorted([coder, default])
    assert owner.ask("PUT", f"{path}/policies", {"policies": None}).json()["policies"] is None


def test_a_revoked_key_is_changed_no_more(acme: Rows, owner: Api) -> None:
    path = f"keys/{owner.ask('POST', 'keys', {'name': 'ci', 'scopes': ['chat']}).json()['key']['id']}"
    ended = owner.ask("POST", f"{path}/revoke").json()
    for name, body in (
        ("limits", {"requests_per_minute": 7}),
        ("policies", {"policies": [str(acme.policy.pk)]}),
        ("policies", {"policies": None}),
    ):
        answer = owner.ask("PUT", f"{path}/{name}", body)
        refused(answer, 409, "key_revoked")
        assert answer.json()["detail"] == "The key is revoked for good. Make another under Keys."
    assert owner.get(path) == ended
