"""A policy's default temperature follows what its batches show, where the tenant wants that."""

from collections.abc import Sequence

from apps.adapters.models import Policy
from apps.learning.config import TrainingConfig
from apps.learning.models import TrainingRun
from apps.learning.rules.temperature import Bounds, Seen, adapt
from kernel import audit


def follow(*, policy: Policy, run: TrainingRun, config: TrainingConfig, rewards: Sequence[float]) -> None:
    """Move the temperature after a step, within the tenant's bounds, in the commit's transaction; audited.

    The temperature is the policy's own row, which requests read: one that names a temperature is not touched
    by it. `policy` is locked and `run` saved by the caller, whose metrics say what was decided.
    """
    if config.exploration == "off":
        return
    ess = run.metrics.get("ess")
    before = policy.temperature
    move = adapt(
        before,
        Seen(rewards=rewards, ess=float(ess) if isinstance(ess, int | float) else None),
        Bounds(config.temperature_low, config.temperature_high, config.temperature_step),
    )
    run.metrics["exploration"] = {
        "before": before,
        "temperature": move.temperature,
        "reason": move.reason or "held",
    }
    if move.temperature == before:
        return
    policy.temperature = move.temperature
    policy.save(update_fields=["temperature"])
    audit.record(
        actor="system:exploration",
        action="policy.temperature",
        target=f"policy:{policy.id}",
        tenant_id=policy.tenant_id,
        detail={"from": before, "to": move.temperature, "reason": move.reason, "run": str(run.id)},
    )
