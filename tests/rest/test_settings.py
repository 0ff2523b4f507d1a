"""A tenant's own settings through /api: judging, rubrics, opt-outs, webhooks; who may, and what is refused."""

from typing import Any

import pytest

from apps.accounts.models import EndUser, Role
from apps.alerts.endpoints import secrets_of
from apps.alerts.models import Alert, Attempt, Delivery, DeliveryState, WebhookEndpoint
from apps.alerts.signing import shown
from apps.judging.models import JudgeSettings, OptOut, Rubric
from apps.learning.models import Sample, SampleState
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused

HOOK = {"url": "https://hooks.example.com/in/secret-path", "events": ["run.failed", "version.live"]}


def test_judge_settings_hold_by_level(acme: Rows, owner: Api, settings: Any) -> None:
    settings.JUDGE_VOTES, settings.JUDGE_TEMPERATURE, settings.JUDGE_DAILY_TOKENS = 3, 0.6, 0
    of_policy = f"policies/{acme.policy.pk}/judging"
    assert owner.get("judging")["own"] == {
        "votes": 5, "temperature": None, "daily_tokens": 1_000_000, "personal_data": None,
    }  # fmt: skip
    asked = {"daily_tokens": 0, "personal_data": "redact", "votes": None}
    changed = owner.ask("PATCH", "judging", asked)
    assert changed.status_code == 200
    assert changed.json()["holds"] == {
        "votes": 3, "temperature": 0.6, "daily_tokens": 0, "personal_data": "redact", "rubric": "",
    }  # fmt: skip
    own = owner.ask("PATCH", of_policy, {"votes": 7, "personal_data": "drop"}).json()
    assert own["own"] == {"votes": 7, "temperature": None, "personal_data": "drop"}
    assert (own["holds"]["votes"], own["holds"]["personal_data"]) == (7, "drop")
    assert owner.ask("PATCH", of_policy, {"personal_data": None}).json()["holds"]["personal_data"] == "redact"
    with tenant_scope(acme.tenant.pk):
        assert AuditEntry.objects.filter(action="judging.change").count() == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"votes": 0}, "votes"),
        ({"votes": 16}, "votes"),
        ({"temperature": 2.1}, "temperature"),
        ({"daily_tokens": -1}, "daily_tokens"),
        ({"personal_data": "sell"}, "personal_data"),
    ],
)
def test_judge_settings_have_bounds(acme: Rows, owner: Api, body: dict[str, Any], field: str) -> None:
    refused(owner.ask("PATCH", "judging", body), 400, "invalid_input", field)
    with tenant_scope(acme.tenant.pk):
        row = JudgeSettings.objects.get(policy=None)
        assert (row.votes, row.temperature, row.daily_tokens, row.personal_data) == (5, None, 1_000_000, "")


def test_a_rubric_is_written_and_every_one_is_kept(acme: Rows, owner: Api) -> None:
    asked = {"policy": str(acme.policy.pk), "text": "Short replies are good."}
    made = owner.ask("POST", "rubrics", asked)
    assert (made.status_code, made.json()["number"]) == (201, 2)
    of_policy = f"policies/{acme.policy.pk}/judging"
    assert owner.get(of_policy)["holds"]["rubric"] == "Short replies are good."
    back = owner.ask("POST", "rubrics", {"policy": str(acme.policy.pk), "text": ""}).json()
    assert (back["number"], owner.get(of_policy)["holds"]["rubric"]) == (3, "")
    assert owner.ask("POST", "rubrics", {"text": "For all."}).json()["policy"] is None
    assert [one["number"] for one in owner.get("rubrics")["results"]] == [4, 3, 2, 1]
    refused(owner.ask("POST", "rubrics", {"text": "x" * 4001}), 400, "invalid_input", "text")
    theirs = {"policy": str(fill("globex").policy.pk), "text": "x"}
    refused(owner.ask("POST", "rubrics", theirs), 404, "not_found", "policy")
    with tenant_scope(acme.tenant.pk):
        assert Rubric.objects.count() == 4


def test_people_opt_out_and_in(acme: Rows, owner: Api) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(
            state=SampleState.READY, run=None, consumed_at=None, staleness=None
        )
    made = owner.ask("POST", "opt-outs", {"end_user": "end-acme"})
    assert (made.status_code, made.json()["end_user"], made.json()["user"]) == (201, "end-acme", None)
    assert owner.ask("POST", "opt-outs", {"end_user": "end-acme"}).json()["id"] == made.json()["id"]
    with tenant_scope(acme.tenant.pk):
        assert Sample.objects.get(pk=acme.sample.pk).state == SampleState.INELIGIBLE
    assert owner.ask("DELETE", f"opt-outs/{made.json()['id']}").status_code == 204
    assert owner.get(f"opt-outs/{made.json()['id']}")["ended_at"] is not None
    anew = owner.ask("POST", "opt-outs", {"end_user": "end-acme"}).json()["id"]
    assert anew != made.json()["id"]
    # the same wish once more, come late: it was not about this one
    assert owner.ask("DELETE", f"opt-outs/{made.json()['id']}").status_code == 204
    assert owner.get(f"opt-outs/{anew}")["ended_at"] is None
    refused(owner.ask("POST", "opt-outs", {"end_user": "nobody"}), 404, "not_found", "end_user")
    both = {"end_user": "end-acme", "user": str(acme.user.pk)}
    for wrong in ({}, both):
        refused(owner.ask("POST", "opt-outs", wrong), 400, "invalid_input", "user")


def test_a_member_opts_themselves_out_and_nobody_else(acme: Rows) -> None:
    mine = member(acme.tenant, Role.MEMBER)
    assert mine.get("opt-outs")["results"] == []
    made = mine.ask("POST", "opt-outs", {"user": str(mine.user.pk)})
    assert made.status_code == 201
    assert [one["id"] for one in mine.get("opt-outs")["results"]] == [made.json()["id"]]
    refused(mine.ask("POST", "opt-outs", {"user": str(acme.user.pk)}), 403, "forbidden")
    refused(mine.ask("POST", "opt-outs", {"end_user": "end-acme"}), 403, "forbidden")
    with tenant_scope(acme.tenant.pk):
        others = OptOut.objects.exclude(user=mine.user).get()
        assert EndUser.objects.get(pk=others.end_user_id).external_id == "end-acme"
    assert mine.ask("DELETE", f"opt-outs/{others.pk}").status_code == 404


def test_a_webhook_shows_its_secret_once(acme: Rows, owner: Api) -> None:
    made = owner.ask("POST", "webhooks", HOOK)
    assert made.status_code == 201
    webhook, secret = made.json()["webhook"], made.json()["secret"]
    path = f"webhooks/{webhook['id']}"
    rotated = owner.ask("POST", f"{path}/rotate").json()["secret"]
    assert rotated != secret
    with tenant_scope(acme.tenant.pk):
        row = WebhookEndpoint.objects.get(pk=webhook["id"])
        assert [shown(one) for one in secrets_of(row)] == [rotated, secret]
        audited = str(list(AuditEntry.objects.values_list("detail", flat=True)))
        assert "secret-path" not in audited
    for read in (owner.get("webhooks"), owner.get(path)):
        assert secret not in str(read)
        assert rotated not in str(read)
    assert owner.get(path)["previous_until"] is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "https://127.0.0.1/in"}, "url"),
        ({"url": "ftp://hooks.example.com"}, "url"),
        ({"url": "https://me:pw@hooks.example.com"}, "url"),
        ({"url": "https://h.example/" + "x" * 2000}, "url"),
        ({"events": []}, "events"),
        ({"events": ["run.failed", "world.ended"]}, "events.1"),
        ({"events": ["endpoint.test"]}, "events.0"),
    ],
)
def test_what_a_webhook_may_not_be(acme: Rows, owner: Api, body: dict[str, Any], field: str) -> None:
    refused(owner.ask("POST", "webhooks", {**HOOK, **body}), 400, "invalid_input", field)
    there = owner.get("webhooks")["results"][0]
    refused(owner.ask("PATCH", f"webhooks/{there['id']}", body), 400, "invalid_input", field)
    with tenant_scope(acme.tenant.pk):
        row = WebhookEndpoint.objects.get()
        assert (row.url, row.events) == ("https://hooks.example/in", ["run.failed"])


def test_a_webhook_is_changed_tried_switched_off_and_deleted(acme: Rows, owner: Api) -> None:
    path = f"webhooks/{owner.ask('POST', 'webhooks', HOOK).json()['webhook']['id']}"
    changed = owner.ask("PATCH", path, {"events": ["drift.crossed"]}).json()
    assert (changed["events"], changed["url"]) == (["drift.crossed"], HOOK["url"])

    tried = owner.ask("POST", f"{path}/test")
    assert (tried.status_code, tried.json()["event"], tried.json()["state"]) == (
        201,
        "endpoint.test",
        "pending",
    )
    refused(owner.ask("POST", f"{path}/test"), 409, "test_under_way")
    with tenant_scope(acme.tenant.pk):
        assert OutboxMessage.objects.filter(dedupe_key=f"deliver:{tried.json()['id']}").count() == 1
        # to this endpoint alone
        assert Delivery.objects.filter(alert__event="endpoint.test").count() == 1
        delivery = Delivery.objects.get(pk=tried.json()["id"])
        Attempt.objects.create(delivery=delivery, number=1, status=500, answer="no", took_ms=2.0)
        Delivery.objects.filter(pk=delivery.pk).update(state=DeliveryState.DEAD, attempts=1, reason="no")
    dead = owner.get(f"deliveries?webhook={path.partition('/')[2]}&state=dead")["results"]
    assert [(one["id"], one["tries"][0]["status"]) for one in dead] == [(str(delivery.pk), 500)]
    assert owner.ask("POST", f"deliveries/{delivery.pk}/replay").json()["state"] == "pending"
    refused(owner.ask("POST", f"deliveries/{delivery.pk}/replay"), 409, "conflict")

    off = owner.ask("PATCH", path, {"enabled": False}).json()
    assert (off["enabled"], off["disabled_reason"][:16]) == (False, "switched off by ")
    refused(owner.ask("POST", f"{path}/test"), 409, "conflict")
    assert owner.ask("PATCH", path, {"enabled": True}).json()["enabled"] is True

    assert owner.ask("DELETE", path).status_code == 204
    refused(owner.ask("GET", path), 404, "not_found")
    with tenant_scope(acme.tenant.pk):
        assert not Delivery.objects.filter(pk=delivery.pk).exists()
        assert Alert.objects.filter(event="endpoint.test").count() == 1
        acts = AuditEntry.objects.filter(action__startswith="webhook.").order_by("id")
        assert list(acts.values_list("action", flat=True)) == [
            *("webhook.create", "webhook.change", "webhook.test", "webhook.disable", "webhook.enable"),
            "webhook.delete",
        ]


def test_mails_are_not_among_the_deliveries(acme: Rows, owner: Api) -> None:
    assert len(owner.get("deliveries")["results"]) == 1
    with tenant_scope(acme.tenant.pk):
        assert Delivery.objects.count() == 2


def test_settings_are_seen_by_all_and_changed_by_who_manages(acme: Rows) -> None:
    viewer, someone = member(acme.tenant, Role.VIEWER), member(acme.tenant, Role.MEMBER)
    for asking in (viewer, someone):
        assert asking.get("judging")["own"]["votes"] == 5
        assert len(asking.get("rubrics")["results"]) == 1
        for method, path, body in (
            ("PATCH", "judging", {"votes": 1}),
            ("PATCH", f"policies/{acme.policy.pk}/judging", {"votes": 1}),
            ("POST", "rubrics", {"text": "mine"}),
            ("POST", "webhooks", HOOK),
            ("GET", "webhooks", None),
            ("GET", "deliveries", None),
        ):
            # what is shown to everybody is changed by a key that may: a viewer's never does
            only_reads = asking is viewer and method == "PATCH"
            refused(asking.ask(method, path, body), 403, "permission_denied" if only_reads else "forbidden")
    answer = viewer.ask("GET", "opt-outs")
    refused(answer, 403, "forbidden")
    assert answer.json()["detail"] == (
        "This needs more than the access `view`. Ask an owner for another role."
    )
    admin = member(acme.tenant, Role.ADMIN)
    assert admin.ask("PATCH", "judging", {"votes": 1}).status_code == 200
    assert admin.ask("POST", "webhooks", HOOK).status_code == 201
