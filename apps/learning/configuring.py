"""Change how a policy learns: every change is a numbered row with who made it and when."""

import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from apps.adapters.models import Policy, PolicyConfig
from apps.learning import presets
from apps.learning.config import TrainingConfig, resolve
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound

OPERATORS = frozenset({"deadline_s", "attempts", "refusals", "check_tokens", "max_sequence_tokens"})
"""What a step may cost the trainers that tenants share: not a tenant's to change."""


def configure(
    *,
    policy_id: uuid.UUID,
    actor: str,
    config: Mapping[str, Any],
    preset: str | None = None,
    whole: bool = False,
    expected: int | None = None,
    operator: bool = False,
) -> PolicyConfig:
    """Change a policy's configuration and return the row that holds from the next run on; audited.

    `config` overrides the platform's settings by name, on top of the preset where one is named, on top of
    what there is. With `whole` nothing else that the caller may set stays. What comes to the same as it was
    makes no new row. `expected` is the number that the caller looked at: Conflict (`changed_meanwhile`) where
    another holds by now. InvalidInput names the field and its limit; without `operator` also where it is not
    the tenant's to set.
    """
    if not operator:
        for name in config:
            if name in OPERATORS:
                raise InvalidInput(f"{name} is for the platform's operators to set", field=f"config.{name}")
    with transaction.atomic():
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).filter(pk=policy_id).first()
        if policy is None:
            raise NotFound("there is no such policy", field="policy")
        if expected is not None and expected != policy.config_number:
            raise Conflict(
                f"the configuration is number {policy.config_number} by now, not {expected}",
                field="number",
                code="changed_meanwhile",
            )
        before = dict(policy.config)
        others = frozenset() if operator else OPERATORS
        kept = {name: value for name, value in before.items() if not whole or name in others}
        after = _clean({**_with_preset(kept, preset), **config})
        if after == before:
            return PolicyConfig.objects.get(policy=policy, number=policy.config_number)
        row = PolicyConfig.objects.create(
            tenant_id=policy.tenant_id,
            policy=policy,
            number=policy.config_number + 1,
            overrides=after,
            actor=actor,
        )
        policy.config = after
        policy.config_number = row.number
        policy.save(update_fields=["config", "config_number"])
        audit.record(
            actor=actor,
            action="policy.config",
            target=f"policy:{policy.pk}",
            tenant_id=policy.tenant_id,
            detail={"number": row.number, "changed": changes(before, after)},
        )
    return row


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what differs between two configurations' overrides: {name:
    {before, after}}, without what is the platform's."""
    pairs = {
        name: {when: side[name] for when, side in (("before", before), ("after", after)) if name in side}
        for name in sorted(before.keys() | after.keys())
    }
    return {name: pair for name, pair in pairs.items() if len(pair) == 1 or pair["before"] != pair["after"]}


def _with_preset(overrides: dict[str, Any], name: str | None) -> dict[str, Any]:
    if name is None:
        return overrides
    chosen = presets.BY_NAME.get(name)
    if chosen is None:
        raise InvalidInput(f"the preset is one of {', '.join(presets.BY_NAME)}", field="preset")
    rest = {field: value for field, value in overrides.items() if field not in presets.SPOKEN_OF}
    return {**rest, **chosen.overrides()}


def _clean(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return valid overrides as they are stored: numbers of their field's kind, in the fields' order."""
    config = resolve(overrides)
    names = [field.name for field in dataclasses.fields(TrainingConfig) if field.name in overrides]
    cleaned = {name: getattr(config, name) for name in names}
    if overrides.get("drift"):
        cleaned["drift"] = overrides["drift"]
    return cleaned
