"""What changes how a policy uses memory."""

from typing import Any

from django.db import transaction

from apps.adapters.models import Policy
from apps.memory.models import LAST_HOUR, MOST_BUDGET_TOKENS, MOST_SHADOW_TOKENS, MemorySetting
from apps.memory.selectors import setting_of
from kernel import audit
from kernel.errors import InvalidInput

MOST = {
    "budget_tokens": MOST_BUDGET_TOKENS,
    "shadow_tokens_per_day": MOST_SHADOW_TOKENS,
    "shadow_from_hour": LAST_HOUR,
    "shadow_until_hour": LAST_HOUR,
}
"""The most that a number may be; the least is 0, and None is as the platform has it."""
KNOWN = frozenset({"in_prompt", "shadow", *MOST})


def set_setting(*, policy: Policy, actor: str, **values: Any) -> MemorySetting:
    """Change how a policy uses memory: in_prompt, budget_tokens, shadow,
    its tokens a day and its hours (UTC).

    What is not named stays. Audited, with what it was before; what comes to the same writes nothing. Raises
    InvalidInput, which names the field and the limit: hours are both there or neither, and not the same one.
    """
    for name, value in values.items():
        if name not in KNOWN:
            raise InvalidInput(f"there is no setting of memory called {name}", field=name)
        if name in MOST and value is not None and not 0 <= value <= MOST[name]:
            raise InvalidInput(f"{name} lies between 0 and {MOST[name]}", field=name)
    unset = setting_of(policy.pk)
    if unset._state.adding and all(getattr(unset, name) == value for name, value in values.items()):  # noqa: SLF001
        return unset
    with transaction.atomic():
        MemorySetting.objects.get_or_create(policy=policy, defaults={"tenant_id": policy.tenant_id})
        row = MemorySetting.objects.select_for_update(of=("self",), no_key=True).get(policy=policy)
        changed = {
            name: {"before": getattr(row, name), "after": value}
            for name, value in values.items()
            if getattr(row, name) != value
        }
        for name in changed:
            setattr(row, name, values[name])
        _check_hours(row)
        if changed:
            row.save(update_fields=[*changed])
            audit.record(
                actor=actor,
                action="memory.setting",
                target=f"policy:{policy.pk}",
                tenant_id=policy.tenant_id,
                detail={"changed": changed},
            )
    return row


def _check_hours(row: MemorySetting) -> None:
    begin, end = row.shadow_from_hour, row.shadow_until_hour
    if (begin is None) != (end is None):
        missing = "shadow_from_hour" if begin is None else "shadow_until_hour"
        raise InvalidInput(f"give both hours, each between 0 and {LAST_HOUR}, or neither", field=missing)
    if begin is not None and begin == end:
        raise InvalidInput(
            "it ends at another hour than it begins; for no hour at all, switch shadow off",
            field="shadow_until_hour",
        )
