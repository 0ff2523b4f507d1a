"""How a policy uses memory, through /api: what is set, what holds, and who may."""

from typing import Any

import pytest

from apps.accounts.models import Role
from apps.memory.models import MemorySetting
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import Api, member
from tests.rest.test_rest import refused

SILENT = {
    "in_prompt": True, "budget_tokens": None, "shadow": True, "shadow_tokens_per_day": None,
    "shadow_from_hour": None, "shadow_until_hour": None,
}  # fmt: skip


@pytest.fixture
def path(acme: Rows) -> str:
    return f"policies/{acme.policy.pk}/memory"


def test_what_is_set_holds_and_the_rest_is_the_platforms(
    acme: Rows, owner: Api, path: str, settings: Any
) -> None:
    settings.MEMORY_BUDGET_TOKENS, settings.SHADOW_ENABLED, settings.SHADOW_TOKENS_PER_DAY = 160, True, 5000
    with tenant_scope(acme.tenant.pk):
        MemorySetting.objects.all().delete()
    assert owner.get(path) == {
        "own": SILENT, "holds": SILENT | {"budget_tokens": 160, "shadow_tokens_per_day": 5000},
    }  # fmt: skip
    night = {"shadow_from_hour": 22, "shadow_until_hour": 6}
    changed = owner.ask("PATCH", path, {"budget_tokens": 0, **night})
    assert changed.status_code == 200
    assert changed.json() == {
        "own": SILENT | night | {"budget_tokens": 0},
        "holds": SILENT | night | {"budget_tokens": 0, "shadow_tokens_per_day": 5000},
    }
    back = owner.ask("PATCH", path, {"budget_tokens": None, "shadow": False}).json()
    assert (back["own"]["shadow_from_hour"], back["holds"]["budget_tokens"]) == (22, 160)
    settings.SHADOW_ENABLED = False
    assert owner.ask("PATCH", path, {"shadow": True}).json()["holds"]["shadow"] is False
    assert owner.get(path)["own"]["shadow"] is True
    with tenant_scope(acme.tenant.pk):
        rows = AuditEntry.objects.filter(action="memory.setting", target=f"policy:{acme.policy.pk}")
        assert [row.actor.partition(":")[0] for row in rows] == ["key"] * 3
        assert rows.order_by("id")[1].detail == {
            "changed": {
                "budget_tokens": {"before": 0, "after": None},
                "shadow": {"before": True, "after": False},
            }
        }


@pytest.mark.parametrize(
    ("body", "field", "limit"),
    [
        ({"budget_tokens": 4097}, "budget_tokens", "4096"),
        ({"budget_tokens": -1}, "budget_tokens", "0"),
        ({"budget_tokens": "64"}, "budget_tokens", "a whole number"),
        ({"in_prompt": None}, "in_prompt", "null"),
        ({"shadow": 1}, "shadow", "true or false"),
        ({"shadow_tokens_per_day": 2_000_000_001}, "shadow_tokens_per_day", "2000000000"),
        ({"shadow_from_hour": 24, "shadow_until_hour": 1}, "shadow_from_hour", "23"),
        ({"shadow_from_hour": 3}, "shadow_until_hour", "both hours"),
        ({"shadow_from_hour": 3, "shadow_until_hour": 3}, "shadow_until_hour", "another hour"),
        ({"speed": 1}, "speed", "no such field"),
    ],
)
def test_what_is_wrong_is_named_with_its_limit(  # noqa: PLR0917
    acme: Rows, owner: Api, path: str, body: dict[str, Any], field: str, limit: str
) -> None:
    answer = owner.ask("PATCH", path, body)
    refused(answer, 400, "invalid_input", field)
    assert limit in answer.json()["detail"]
    assert owner.get(path)["own"] == SILENT
    with tenant_scope(acme.tenant.pk):
        assert not AuditEntry.objects.filter(action="memory.setting").exists()


def test_all_may_look_and_who_manages_changes(acme: Rows, path: str) -> None:
    for role, code in ((Role.VIEWER, "permission_denied"), (Role.MEMBER, "forbidden")):
        asking = member(acme.tenant, role)
        assert asking.get(path)["own"] == SILENT
        refused(asking.ask("PATCH", path, {"in_prompt": False}), 403, code)
    reading = member(acme.tenant, Role.ADMIN, scopes=("read",))
    refused(reading.ask("PATCH", path, {"in_prompt": False}), 403, "permission_denied")
    with tenant_scope(acme.tenant.pk):
        assert MemorySetting.objects.get(policy=acme.policy).in_prompt is True
        assert not AuditEntry.objects.filter(action="memory.setting").exists()
    admin = member(acme.tenant, Role.ADMIN)
    assert admin.ask("PATCH", path, {"in_prompt": False}).json()["holds"]["in_prompt"] is False


def test_another_tenants_setting_is_nowhere(acme: Rows, owner: Api) -> None:
    other = fill("globex")
    for method, body in (("GET", None), ("PATCH", {"in_prompt": False})):
        refused(owner.ask(method, f"policies/{other.policy.pk}/memory", body), 404, "not_found")
    with tenant_scope(other.tenant.pk):
        assert MemorySetting.objects.get(policy=other.policy).in_prompt is True
