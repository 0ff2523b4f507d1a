"""A policy is made on a page: by whom, under what name, and how it learns from the start."""

from typing import Any

import pytest

from apps.accounts.models import Role
from apps.accounts.services import create_tenant, set_role
from apps.adapters.models import Policy, PolicyConfig
from apps.dashboard.settings import new_policy
from apps.learning.presets import BY_NAME
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill, operator
from tests.apps.dashboard.conftest import browser, member, text_of

HERE = "/t/acme/settings/policies/new"
CODER = {"name": "coder", "preset": "standard", "method": "combined"}


def names(rows: Rows) -> list[str]:
    with tenant_scope(rows.tenant.pk):
        return list(Policy.objects.order_by("name").values_list("name", flat=True))


def test_it_is_made_and_stands_in_its_settings(acme: Rows) -> None:
    client = browser(acme.user)
    for page in ("/t/acme/", "/t/acme/settings"):
        assert f'href="{HERE}"' in client.get(page).content.decode(), page
    answer: Any = client.post(HERE, CODER, follow=True)
    with tenant_scope(acme.tenant.pk):
        made = Policy.objects.get(name="coder")
        assert (made.config, made.config_number, made.live_id) == ({}, 1, None)
        assert PolicyConfig.objects.filter(policy=made).count() == 1
        told = AuditEntry.objects.get(action="policy.create", target=f"policy:{made.pk}")
    assert told.actor == f"user:{acme.user.pk}"
    assert answer.redirect_chain == [(f"/t/acme/settings/policies/{made.pk}", 302)]
    assert "Made. Clients ask it as the model coder." in answer.content.decode()


def test_its_preset_and_method_hold_from_the_start(acme: Rows) -> None:
    browser(acme.user).post(HERE, {"name": "gentle.one", "preset": "gentle", "method": "binary"})
    with tenant_scope(acme.tenant.pk):
        made = Policy.objects.get(name="gentle.one")
    assert made.config == {**BY_NAME["gentle"].overrides(), "method": "binary"}
    assert made.config_number == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "Name: this is empty. Fill it in."),
        (
            {"name": "Coder"},
            "Name: lower-case letters, digits, dots, hyphens and underscores, a letter first.",
        ),
        ({"name": "1st"}, "Name: lower-case letters, digits, dots, hyphens and underscores, a letter first."),
        ({"name": "a" * 61}, "Name: at most 60 characters, and this has 61. Make it shorter."),
        ({"name": "default"}, "Name: there is a policy of this name already. Choose another one."),
        ({"preset": "wild"}, "Preset: this is none of the choices. Choose once more."),
        ({"method": "magic"}, "What teaches: this is none of the choices. Choose once more."),
    ],
)
def test_what_is_refused_is_said_and_what_was_typed_stays(
    acme: Rows, change: dict[str, str], said: str
) -> None:
    before = names(acme)
    page: Any = browser(acme.user).post(HERE, {**CODER, **change})
    assert page.status_code == 200
    text = page.content.decode()
    assert said in text
    assert f'value="{change.get("name", "coder")}"' in text
    assert names(acme) == before


def test_a_configuration_that_is_refused_leaves_no_policy(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**named: Any) -> None:
        raise RuntimeError(str(named["preset"]))

    monkeypatch.setattr(new_policy, "configure", broken)
    assert browser(acme.user).post(HERE, CODER).status_code == 500
    assert names(acme) == ["default"]


@pytest.mark.parametrize(
    ("role", "may"), [(Role.VIEWER, False), (Role.MEMBER, False), (Role.ADMIN, True), (Role.OWNER, True)]
)
def test_who_makes_one(acme: Rows, role: Role, may: bool) -> None:
    client = browser(member(acme.tenant, role))
    assert client.get(HERE).status_code == (200 if may else 403)
    assert client.post(HERE, CODER).status_code == (302 if may else 403)
    assert names(acme) == (["coder", "default"] if may else ["default"])
    assert (f'href="{HERE}"' in client.get("/t/acme/settings").content.decode()) is may
    assert (f'href="{HERE}"' in client.get("/t/acme/").content.decode()) is may


def test_a_stranger_finds_nothing_and_names_are_each_tenants_own(acme: Rows) -> None:
    other = fill("globex")
    assert browser(other.user).get(HERE).status_code == 404
    assert browser(other.user).post(HERE, CODER).status_code == 404
    assert names(acme) == ["default"]
    assert browser(acme.user).post(HERE, CODER).status_code == 302
    assert browser(other.user).post("/t/globex/settings/policies/new", CODER).status_code == 302
    assert names(acme) == names(other) == ["coder", "default"]


def test_a_tenant_without_one_is_told_how_to_make_the_first(db: None) -> None:
    del db
    user = operator()
    with system_scope("tests"):
        tenant = create_tenant(slug="bare", name="Bare", actor="system:tests")
    set_role(tenant_id=tenant.pk, user=user, role=Role.OWNER, actor="system:tests")
    client = browser(user)
    assert "None yet: a client has no model to name. Make the first one" in text_of(client, "/t/bare/")
    assert "Bare has none yet." in text_of(client, "/t/bare/settings/policies/new")
    viewer = browser(member(tenant, Role.VIEWER))
    assert "Owners and admins make them." in text_of(viewer, "/t/bare/")
