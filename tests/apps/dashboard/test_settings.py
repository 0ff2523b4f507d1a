"""The settings' pages: what they show, what they change, with errors at the field, and who may."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Role
from apps.adapters.models import Policy, PolicyConfig
from apps.alerts.models import Delivery, DeliveryState, WebhookEndpoint
from apps.judging.models import JudgeSettings, OptOut, Rubric
from apps.learning.configuring import configure
from apps.memory.models import MemorySetting
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import NASTY, Rows
from tests.apps.dashboard.conftest import browser, member, text_of


@pytest.fixture
def client(acme: Rows) -> Client:
    return browser(acme.user)


@pytest.fixture
def path(acme: Rows) -> str:
    return f"/t/acme/settings/policies/{acme.policy.pk}"


def config_of(rows: Rows) -> tuple[int, dict[str, Any]]:
    with tenant_scope(rows.tenant.pk):
        policy = Policy.objects.get(pk=rows.policy.pk)
        return policy.config_number, policy.config


def filled(client: Client, path: str) -> dict[str, str]:
    """Return the values of the form of the configuration as the page has them."""
    page = client.get(path).content.decode()
    form = page[page.index('name="form" value="config"') :]
    form = form[: form.index("</form>")]
    values = {
        name: value
        for name, value in re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', form)
        if name != "csrfmiddlewaretoken"
    }
    for name, options in re.findall(r'<select[^>]* name="(\w+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        values[name] = re.findall(r'value="(\w+)" selected', options)[0]
    return {**values, "form": "config"}


def test_what_a_person_changes_and_nothing_else_becomes_their_own(
    acme: Rows, client: Client, path: str
) -> None:
    form = filled(client, path)
    assert (form["lr"], form["batch_size"], form["method"], form["number"]) == (
        "0.0004",
        "8",
        "combined",
        "1",
    )
    assert client.post(path, {**form, "lr": "0.0002", "method": "binary"}).status_code == 302
    assert config_of(acme) == (2, {"lr": 0.0002, "method": "binary"})
    seen = text_of(client, path)
    assert f" UTC {acme.user.email} lr the platform&#x27;s → 0.0002" in seen
    with tenant_scope(acme.tenant.pk):
        row = PolicyConfig.objects.get(policy=acme.policy, number=2)
        assert row.actor == f"user:{acme.user.pk}"
        assert AuditEntry.objects.filter(action="policy.config", actor=row.actor).count() == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("lr", "2", "Learning rate: at most 1. Give a smaller number."),
        ("batch_size", "0", "Samples in a step: at least 1. Give a larger number."),
        ("batch_size", "1.5", "Samples in a step: this is no whole number. Give one, such as 7."),
        ("window", "x", "Window, as a part of the buffer (W): this is no number. Give one, such as 0.5."),
        ("method", "magic", "What teaches: this is none of the choices."),
    ],
)
def test_an_error_stands_at_its_field_and_nothing_changes(  # noqa: PLR0917
    acme: Rows, client: Client, path: str, field: str, value: str, words: str
) -> None:
    page = client.post(path, {**filled(client, path), field: value, "hints": "3"})
    assert page.status_code == 200
    wrong = re.search(rf'id="config-{field}-wrong"><li>([^<]*)<', page.content.decode())
    assert wrong is not None
    assert words in wrong[1]
    assert config_of(acme) == (1, {})


def test_who_looked_at_an_older_one_is_told(acme: Rows, client: Client, path: str) -> None:
    form = filled(client, path)
    with tenant_scope(acme.tenant.pk):
        configure(policy_id=acme.policy.pk, actor="user:other", config={"batch_size": 4})
    page = client.post(path, {**form, "lr": "0.0002"}).content.decode()
    assert "the configuration is number 2 by now, not 1" in page
    assert config_of(acme) == (2, {"batch_size": 4})


def test_a_preset_is_chosen_and_what_was_comes_back(acme: Rows, client: Client, path: str) -> None:
    client.post(path, {"form": "preset", "preset": "quick"})
    assert config_of(acme)[1] == {"lr": 0.0008, "batch_size": 4, "flush_s": 450.0, "max_staleness": 8}
    assert "quick in use" in text_of(client, path)
    assert "default yes quick number 2" in text_of(client, "/t/acme/settings")
    assert client.post(path, {"form": "preset", "preset": "wild"}).status_code == 404
    assert client.post(path, {"form": "magic"}).status_code == 404
    client.post(path, {"form": "return", "number": "1"})
    assert config_of(acme) == (3, {})
    for number in ("9", "x", "", "9" * 5000):
        assert client.post(path, {"form": "return", "number": number}).status_code == 404


def test_what_the_platform_takes_no_more_is_not_called_saved(acme: Rows, client: Client, path: str) -> None:
    with tenant_scope(acme.tenant.pk):
        for config in ({"lr": -1.0}, {}):  # by bare statements, which Postgres numbers
            Policy.objects.filter(pk=acme.policy.pk).update(config=config)
    page = client.post(path, {"form": "return", "number": "2"}, follow=True).content.decode()
    assert "The platform does not take it any more: " in page
    assert "Saved." not in page
    assert config_of(acme) == (3, {})


def test_a_rubric_is_written_and_shown_safely(acme: Rows, client: Client, path: str) -> None:
    client.post(path, {"form": "rubric", "text": f"Short is good. {NASTY}"})
    page = client.get(path).content.decode()
    assert "<script>alert" not in page
    assert "Short is good." in page
    wrong = client.post(path, {"form": "rubric", "text": "x" * 4001}).content.decode()
    assert "at most 4,000 characters" in wrong
    with tenant_scope(acme.tenant.pk):
        assert list(Rubric.objects.order_by("number").values_list("number", flat=True)) == [1, 2]


def test_judge_settings_are_set_and_left_to_the_level_above(acme: Rows, client: Client, path: str) -> None:
    client.post(path, {"form": "judging", "votes": "7", "personal_data": "drop"})
    client.post("/t/acme/settings/judging", {"form": "judging", "votes": "", "daily_tokens": "5000"})
    wrong = client.post(path, {"form": "judging", "votes": "16"}).content.decode()
    assert 'id="judging-votes-wrong"' in wrong
    with tenant_scope(acme.tenant.pk):
        own, tenants = JudgeSettings.objects.get(policy=acme.policy), JudgeSettings.objects.get(policy=None)
        assert (own.votes, own.personal_data) == (7, "drop")
        assert (tenants.votes, tenants.daily_tokens, tenants.personal_data) == (None, 5000, "")
    client.post(path, {"form": "judging", "votes": "", "personal_data": ""})
    with tenant_scope(acme.tenant.pk):
        own.refresh_from_db()
        assert (own.votes, own.personal_data) == (None, "")


REMEMBERS = {
    "form": "memory",
    "in_prompt": "on",
    "shadow": "on",
    "budget_tokens": "",
    "shadow_tokens_per_day": "",
    "shadow_from_hour": "",
    "shadow_until_hour": "",
}


def remembered(rows: Rows) -> tuple[Any, ...]:
    with tenant_scope(rows.tenant.pk):
        row = MemorySetting.objects.get(policy=rows.policy)
    return (
        *(row.in_prompt, row.budget_tokens, row.shadow, row.shadow_tokens_per_day),
        *(row.shadow_from_hour, row.shadow_until_hour),
    )


def test_how_memory_is_used_is_shown_and_changed(
    acme: Rows, client: Client, path: str, settings: Any
) -> None:
    settings.MEMORY_BUDGET_TOKENS, settings.SHADOW_TOKENS_PER_DAY, settings.SHADOW_ENABLED = (
        160,
        200_000,
        True,
    )
    seen = text_of(client, path)
    assert "stands in their prompts, with at most 160 tokens of each." in seen
    assert "with at most 200 000 tokens in 24 hours" in seen
    assert "Tokens of a prompt for that; empty: the platform&#x27;s, 160" in seen
    night = {"budget_tokens": "1", "shadow_from_hour": "22", "shadow_until_hour": "6"}
    assert client.post(path, {**REMEMBERS, **night}).status_code == 302
    assert remembered(acme) == (True, 1, True, None, 22, 6)
    seen = text_of(client, path)
    assert "with at most 1 token of each." in seen
    assert "In quiet minutes from 22 to 6 o\u2019clock UTC the weights learn" in seen
    without = {name: value for name, value in REMEMBERS.items() if value != "on"}
    assert client.post(path, without).status_code == 302
    assert remembered(acme) == (False, None, False, None, None, None)
    seen = text_of(client, path)
    assert "No prompt is told what people asked for; it is kept all the same." in seen
    assert "The weights are not taught it." in seen
    settings.SHADOW_ENABLED = False
    assert "This platform teaches nothing in quiet minutes, whatever is set here." in text_of(client, path)
    with tenant_scope(acme.tenant.pk):
        rows = AuditEntry.objects.filter(action="memory.setting", actor=f"user:{acme.user.pk}")
        assert [sorted(row.detail["changed"]) for row in rows.order_by("id")] == [
            ["budget_tokens", "shadow_from_hour", "shadow_until_hour"],
            ["budget_tokens", "in_prompt", "shadow", "shadow_from_hour", "shadow_until_hour"],
        ]


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"budget_tokens": "4097"}, "budget_tokens", "Tokens of a prompt for that: at most 4,096."),
        ({"budget_tokens": "x"}, "budget_tokens", "Tokens of a prompt for that: this is no whole number."),
        (
            {"shadow_tokens_per_day": "-1"},
            "shadow_tokens_per_day",
            "Tokens written for it in 24 hours: at least 0.",
        ),
        ({"shadow_from_hour": "24"}, "shadow_from_hour", "Quiet minutes from this hour, UTC: at most 23."),
        ({"shadow_from_hour": "3"}, "shadow_until_hour", "give both hours, each between 0 and 23"),
        ({"shadow_from_hour": "3", "shadow_until_hour": "3"}, "shadow_until_hour", "another hour"),
    ],
)
def test_a_wrong_number_of_memory_is_named_at_its_field(  # noqa: PLR0917
    acme: Rows, client: Client, path: str, wrong: dict[str, str], field: str, words: str
) -> None:
    page = client.post(path, {**REMEMBERS, "in_prompt": "", **wrong})
    assert page.status_code == 200
    found = re.search(rf'id="memory-{field}-wrong"><li>([^<]*)<', page.content.decode())
    assert found is not None
    assert words in found[1]
    assert remembered(acme) == (True, None, True, None, None, None)


def test_people_are_taken_out_and_let_in(acme: Rows, client: Client) -> None:
    path = "/t/acme/settings/judging"
    client.post(path, {"form": "out", "who": "end-acme"})
    client.post(path, {"form": "out", "who": "OWNER@acme.example"})
    assert "Nobody here has" in client.post(path, {"form": "out", "who": "ghost"}).content.decode()
    with tenant_scope(acme.tenant.pk):
        rows = list(OptOut.objects.filter(ended_at=None).order_by("created_at"))
        assert [(row.user_id, row.end_user_id is not None) for row in rows] == [
            (None, True),
            (acme.user.pk, False),
        ]
    assert client.post(path, {"form": "in", "id": str(rows[0].pk)}).status_code == 302
    assert client.post(path, {"form": "in", "id": str(rows[0].pk)}).status_code == 404
    with tenant_scope(acme.tenant.pk):
        assert OptOut.objects.filter(ended_at=None).count() == 1


def test_a_webhook_is_added_changed_tried_and_deleted_when_sure(acme: Rows, client: Client) -> None:
    form = {"url": "https://hooks.example.com/in", "events": ["run.failed"]}
    page = client.post("/t/acme/settings/alerts", form).content.decode()
    secret = re.search(r'class="secret">(whsec_[^<]+)<', page)
    assert secret is not None
    assert secret[1] not in client.get("/t/acme/settings/alerts").content.decode()
    with tenant_scope(acme.tenant.pk):
        row = WebhookEndpoint.objects.get(url=form["url"])
    path = f"/t/acme/settings/alerts/{row.pk}"
    for wrong, words in (
        ({"url": "https://10.0.0.1/"}, "10.0.0.1 is not a public address"),
        ({"events": []}, "It is told that: this is empty. Fill it in."),
    ):
        assert words in client.post("/t/acme/settings/alerts", {**form, **wrong}).content.decode()
        assert words in client.post(path, {**form, **wrong, "wish": "change"}).content.decode()
    client.post(path, {**form, "wish": "change", "events": ["drift.crossed"]})
    client.post(path, {"wish": "test"})
    assert "a test is on its way" in text_of(client, path).lower()
    rotated = client.post(path, {"wish": "rotate"}).content.decode()
    assert 'class="secret">whsec_' in rotated
    with tenant_scope(acme.tenant.pk):
        delivery = Delivery.objects.get(endpoint=row)
        Delivery.objects.filter(pk=delivery.pk).update(state=DeliveryState.DEAD, reason="HTTP 500")
    client.post(path, {"wish": "replay", "delivery": str(delivery.pk)})
    client.post(path, {"wish": "off"})
    with tenant_scope(acme.tenant.pk):
        row.refresh_from_db()
        delivery.refresh_from_db()
        assert (row.events, row.enabled, delivery.state) == (["drift.crossed"], False, "pending")
    client.post(path, {"wish": "on"})
    client.post(path, {"wish": "delete"})
    assert "Say that you are sure" in text_of(client, path)
    assert client.post(path, {"wish": "magic"}).status_code == 404
    gone = client.post(path, {"wish": "delete", "sure": "on"})
    assert (gone.status_code, gone["Location"]) == (302, "/t/acme/settings/alerts")
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER])
def test_who_does_not_manage_sees_and_changes_nothing(acme: Rows, path: str, role: Role) -> None:
    somebody = browser(member(acme.tenant, role))
    for address in ("/t/acme/settings", "/t/acme/settings/judging", path):
        seen = somebody.get(address).content.decode()
        assert "Owners and admins change these." in seen
        main = seen[seen.index('<main id="main"') :]
        assert "<button" not in main
        assert main.count("<fieldset") == main.count("disabled")
        assert somebody.post(address, {"form": "judging", "votes": "1", "name": "x"}).status_code == 403
    assert somebody.post(path, {"form": "memory", "budget_tokens": "1"}).status_code == 403
    assert remembered(acme) == (True, None, True, None, None, None)
    with tenant_scope(acme.tenant.pk):
        hook = WebhookEndpoint.objects.get()
        assert (
            not AuditEntry.objects.exclude(action__in=("test.fill", "member.role"))
            .filter(actor__startswith="user:")
            .exists()
        )
    for address in ("/t/acme/settings/alerts", f"/t/acme/settings/alerts/{hook.pk}"):
        assert somebody.get(address).status_code == 403
        assert somebody.post(address, {"wish": "delete", "sure": "on"}).status_code == 403
    assert config_of(acme) == (1, {})


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 121])
def test_a_name_that_is_none_changes_nothing_and_is_not_called_saved(
    acme: Rows, client: Client, name: str
) -> None:
    before = acme.tenant.name
    page = client.post("/t/acme/settings", {"name": name}, follow=True).content.decode()
    assert "Name: " in page
    assert "Saved." not in page
    with system_scope("tests"):
        acme.tenant.refresh_from_db()
    assert (acme.tenant.name, acme.tenant.training_enabled) == (before, True)
