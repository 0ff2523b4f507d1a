"""How a policy learns, through /api: presets, changes with their number, history, and who may."""

import pytest

from apps.accounts.models import Role
from apps.adapters.models import Policy
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused


def test_a_configuration_is_shown_whole_changed_and_kept(acme: Rows, owner: Api) -> None:
    path = f"policies/{acme.policy.pk}/config"
    first = owner.get(path)
    assert (first["number"], first["config"], first["preset"]) == (1, {}, "standard")
    assert (first["resolved"]["lr"], first["resolved"]["max_staleness"]) == (4e-4, 4)

    changed = owner.ask("PATCH", path, {"config": {"method": "binary"}, "number": 1})
    assert changed.status_code == 200
    assert (changed.json()["number"], changed.json()["config"]) == (2, {"method": "binary"})
    whole = owner.ask("PUT", path, {"preset": "gentle", "config": {"hints": 2}}).json()
    assert (whole["number"], whole["preset"]) == (3, "gentle")
    assert whole["config"] == {
        "lr": 2e-4, "batch_size": 16, "flush_s": 7200.0, "kl_weight": 0.02, "hints": 2,
    }  # fmt: skip
    assert whole["resolved"]["batch_size"] == 16
    assert owner.get(path) == whole

    history = owner.get(f"policies/{acme.policy.pk}/configs")["results"]
    assert [one["number"] for one in history] == [3, 2, 1]
    assert history[0]["config"] == whole["config"]
    assert history[0]["actor"].startswith("key:")
    assert owner.get(f"policies/{acme.policy.pk}")["config_number"] == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"config": {"lr": 2}}, "config.lr"),
        ({"config": {"window": -0.1}}, "config.window"),
        ({"config": {"speed": 1}}, "config.speed"),
        ({"config": {"deadline_s": 60}}, "config.deadline_s"),
        ({"config": {"drift": {"ess": {"limit": 2}}}}, "config.drift.ess.limit"),
        ({"config": []}, "config"),
        ({"config": None}, "config"),
        ({"preset": "wild"}, "preset"),
        ({"number": 0}, "number"),
    ],
)
def test_what_is_wrong_is_named_with_its_limit(acme: Rows, owner: Api, body: object, field: str) -> None:
    for method in ("PATCH", "PUT"):
        refused(owner.ask(method, f"policies/{acme.policy.pk}/config", body), 400, "invalid_input", field)
    with tenant_scope(acme.tenant.pk):
        assert Policy.objects.get(pk=acme.policy.pk).config_number == 1


def test_who_looked_at_another_number_is_told(acme: Rows, owner: Api) -> None:
    path = f"policies/{acme.policy.pk}/config"
    assert owner.ask("PATCH", path, {"config": {"hints": 2}}).status_code == 200
    refused(owner.ask("PUT", path, {"config": {"hints": 3}, "number": 1}), 409, "changed_meanwhile", "number")


def test_all_may_look_and_who_manages_changes(acme: Rows, owner: Api) -> None:
    path = f"policies/{acme.policy.pk}/config"
    for role, code in ((Role.VIEWER, "permission_denied"), (Role.MEMBER, "forbidden")):
        asking = member(acme.tenant, role)
        assert asking.get(path)["number"] == 1
        assert len(asking.get(f"policies/{acme.policy.pk}/configs")["results"]) == 1
        refused(asking.ask("PATCH", path, {"config": {"hints": 2}}), 403, code)
        refused(asking.ask("PUT", path, {}), 403, code)
    assert member(acme.tenant, Role.ADMIN).ask("PATCH", path, {"preset": "quick"}).status_code == 200
    assert [one["name"] for one in owner.get("presets")] == ["standard", "gentle", "quick"]


def test_another_tenants_configurations_are_nowhere(acme: Rows, owner: Api) -> None:
    other = fill("globex")
    refused(owner.ask("GET", f"policies/{other.policy.pk}/configs"), 404, "not_found")
    refused(
        owner.ask("PUT", f"policies/{other.policy.pk}/config", {"config": {"hints": 2}}), 404, "not_found"
    )


def test_a_configuration_that_is_not_valid_any_more_is_shown_as_such(acme: Rows, owner: Api) -> None:
    with tenant_scope(acme.tenant.pk):
        Policy.objects.filter(pk=acme.policy.pk).update(config={"lr": 7})
    path = f"policies/{acme.policy.pk}/config"
    shown = owner.get(path)
    assert (shown["number"], shown["config"], shown["preset"], shown["resolved"]) == (2, {"lr": 7}, "", None)
    assert owner.ask("PATCH", path, {"config": {"lr": 0.001}}).json()["resolved"]["lr"] == 0.001
