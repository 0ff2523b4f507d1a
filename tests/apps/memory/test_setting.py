"""How a policy uses memory: what is set, what holds, what is refused, and what the audit log says."""

import threading
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from apps.memory import services
from apps.memory.models import MemorySetting
from apps.memory.selectors import setting_of
from apps.memory.use import Use, use_of
from kernel.errors import InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody, add_somebody


def put(somebody: Somebody, **values: Any) -> MemorySetting:
    with tenant_scope(somebody.tenant.id):
        return services.set_setting(policy=somebody.policy, actor="user:x", **values)


def use(somebody: Somebody) -> Use:
    with tenant_scope(somebody.tenant.id):
        return use_of(setting_of(somebody.policy.pk))


def audited() -> list[dict[str, Any]]:
    with system_scope("look"):
        rows = AuditEntry.objects.filter(action="memory.setting").order_by("id")
        return list(rows.values_list("detail", flat=True))


def test_the_platform_decides_what_a_policy_is_silent_about(somebody: Somebody, settings: Settings) -> None:
    settings.MEMORY_BUDGET_TOKENS, settings.SHADOW_TOKENS_PER_DAY = 99, 1234
    settings.SHADOW_ENABLED = True
    assert use(somebody) == Use(True, 99, True, 1234, None, None)
    put(somebody, in_prompt=False, budget_tokens=0, shadow_tokens_per_day=0)
    put(somebody, shadow_from_hour=22, shadow_until_hour=6)
    assert use(somebody) == Use(False, 0, True, 0, 22, 6)
    settings.SHADOW_ENABLED = False
    assert use(somebody).shadow is False
    put(somebody, budget_tokens=None)
    assert use(somebody).budget_tokens == 99


@pytest.mark.parametrize(
    ("begin", "end", "open_at"),
    [(9, 17, [9, 16]), (22, 6, [0, 5, 22, 23]), (0, 23, [0, 22]), (23, 0, [23]), (None, None, [0, 12, 23])],
)
def test_hours_of_the_day(begin: int | None, end: int | None, open_at: list[int]) -> None:
    held = Use(True, 0, True, 0, begin, end)
    found = [hour for hour in range(24) if held.teaches_at(hour)]
    assert found[0] == open_at[0]
    assert found[-1] == open_at[-1]
    assert set(open_at) <= set(found)
    if begin is not None and end is not None:
        assert len(found) == (end - begin) % 24


def test_what_is_not_named_stays_and_what_is_the_same_writes_nothing(somebody: Somebody) -> None:
    put(somebody, budget_tokens=64, shadow=False)
    put(somebody, in_prompt=False)
    row = put(somebody, in_prompt=False, budget_tokens=64)
    assert (row.in_prompt, row.budget_tokens, row.shadow) == (False, 64, False)
    assert audited() == [
        {"changed": {"budget_tokens": {"before": None, "after": 64}, "shadow": {"before": True, "after": False}}},
        {"changed": {"in_prompt": {"before": True, "after": False}}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "field", "limit"),
    [
        ({"budget_tokens": 4097}, "budget_tokens", "between 0 and 4096"),
        ({"budget_tokens": -1}, "budget_tokens", "between 0 and 4096"),
        ({"shadow_tokens_per_day": 2_000_000_001}, "shadow_tokens_per_day", "between 0 and 2000000000"),
        ({"shadow_from_hour": 24, "shadow_until_hour": 1}, "shadow_from_hour", "between 0 and 23"),
        ({"shadow_from_hour": 1}, "shadow_until_hour", "both hours"),
        ({"shadow_until_hour": 1}, "shadow_from_hour", "both hours"),
        ({"shadow_from_hour": 5, "shadow_until_hour": 5}, "shadow_until_hour", "another hour"),
        ({"mood": 1}, "mood", "no setting of memory"),
    ],
)
def test_what_is_wrong_is_named_with_its_limit_and_changes_nothing(
    somebody: Somebody, values: dict[str, Any], field: str, limit: str
) -> None:
    with pytest.raises(InvalidInput, match=limit) as refused:
        put(somebody, in_prompt=False, **values)
    assert refused.value.field == field
    with tenant_scope(somebody.tenant.id):
        assert not MemorySetting.objects.exists()
        assert setting_of(somebody.policy.pk).in_prompt is True
    assert audited() == []


def test_one_of_two_hours_that_are_set_may_change_alone_and_not_go_alone(somebody: Somebody) -> None:
    put(somebody, shadow_from_hour=1, shadow_until_hour=5)
    put(somebody, shadow_until_hour=7)
    assert (use(somebody).shadow_from_hour, use(somebody).shadow_until_hour) == (1, 7)
    for values in ({"shadow_from_hour": None}, {"shadow_until_hour": None}, {"shadow_from_hour": 7}):
        with pytest.raises(InvalidInput):
            put(somebody, **values)
    assert (use(somebody).shadow_from_hour, use(somebody).shadow_until_hour) == (1, 7)


@pytest.mark.parametrize(
    "values",
    [
        {"budget_tokens": 4097},
        {"shadow_tokens_per_day": 2_000_000_001},
        {"shadow_from_hour": 1},
        {"shadow_until_hour": 1},
        {"shadow_from_hour": 24, "shadow_until_hour": 1},
        {"shadow_from_hour": 1, "shadow_until_hour": 24},
        {"shadow_from_hour": 5, "shadow_until_hour": 5},
    ],
)
def test_postgres_refuses_what_is_out_of_bounds(somebody: Somebody, values: dict[str, Any]) -> None:
    put(somebody, shadow=False)
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(IntegrityError), transaction.atomic():
            MemorySetting.objects.update(**values)
        with pytest.raises(IntegrityError), transaction.atomic():
            MemorySetting.objects.create(policy=somebody.policy)  # a second one


@pytest.mark.django_db(transaction=True)
def test_two_who_set_different_things_at_once_are_both_heard(transactional_db: None) -> None:
    del transactional_db
    somebody = add_somebody()

    def change(**values: Any) -> None:
        try:
            put(somebody, **values)
        finally:
            connection.close()

    both = [
        threading.Thread(target=change, kwargs=values)
        for values in ({"in_prompt": False}, {"budget_tokens": 7})
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (use(somebody).in_prompt, use(somebody).budget_tokens) == (False, 7)
    assert sorted(name for one in audited() for name in one["changed"]) == ["budget_tokens", "in_prompt"]
