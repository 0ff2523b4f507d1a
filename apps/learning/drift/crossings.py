"""Hold a reading against its bounds, and decide.

All in the caller's transaction, with the policy's row locked.

One crossing of a measure is open at a time, and does what it asks for once. It ends when the measure is well
inside its bound again or when an operator resumes the policy, so a measure that dances on its bound does
nothing twice.
"""

from collections.abc import Mapping

from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.publishing import withhold
from apps.alerts import services as alerts
from apps.alerts.models import Event, Severity
from apps.learning.drift import pauses
from apps.learning.drift.bounds import Bound
from apps.learning.drift.models import Action, Crossing, DriftReading
from kernel import outbox

ACTOR = "system:drift"


def outside(reading: DriftReading, bounds: Mapping[str, Bound]) -> list[str]:
    """Return, in words, every measure of a reading that is past its bound, new or not."""
    return [
        bound.words(reading.values[measure], reading.values)
        for measure, bound in bounds.items()
        if measure in reading.values and bound.crossed(reading.values[measure])
    ]


def judge(
    reading: DriftReading, *, policy: Policy, bounds: Mapping[str, Bound], made: AdapterVersion | None
) -> list[Crossing]:
    """Open and clear crossings as a new reading says, act on those it opened, and return them.

    `made` is the version that the reading's run made and that is not live yet.
    """
    still_open = {one.measure: one for one in Crossing.objects.filter(policy=policy, cleared_at=None)}
    opened = []
    for measure, bound in bounds.items():
        value = reading.values.get(measure)
        if value is None or bound.gauge != reading.gauge:
            continue
        before = still_open.get(measure)
        if before is not None:
            if bound.well_inside(value):
                before.cleared_at, before.cleared_by = timezone.now(), f"the measure: {value:.3g}"
                before.save(update_fields=["cleared_at", "cleared_by"])
        elif bound.crossed(value) and _long_enough(reading, bound):
            opened.append(_open(reading, policy, bound, value, made))
    return opened


def ask_to_fall_back(crossing: Crossing, *, delay_s: float = 0.0) -> None:
    """Announce, in the caller's transaction, that a policy is to go back to the version before."""
    outbox.enqueue(
        task="workers.drift.fall_back",
        queue="ops",
        tenant_id=crossing.tenant_id,
        kwargs={"crossing_id": str(crossing.pk)},
        dedupe_key=f"fall-back:{crossing.pk}",
        delay_s=delay_s,
    )


def _open(
    reading: DriftReading, policy: Policy, bound: Bound, value: float, made: AdapterVersion | None
) -> Crossing:
    crossing = Crossing.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        reading=reading,
        measure=bound.measure,
        value=value,
        bound=bound.limit,
        action=bound.action,
        words=bound.words(value, reading.values)[:500],
        version=made or policy.live,
    )
    _act(crossing, policy, made)
    crossing.save()
    alerts.alert(
        tenant_id=policy.tenant_id,
        event=Event.DRIFT_CROSSED,
        severity=Severity.WARNING if crossing.action == Action.ALERT else Severity.CRITICAL,
        words=f"Drift of {policy.name}: {crossing.words}.",
        done=crossing.done,
        policy_id=policy.pk,
        run_id=reading.run_id,
        version_id=crossing.version_id,
        data={
            "policy": policy.name,
            "gauge": reading.gauge,
            "measure": bound.measure,
            "value": value,
            "limit": bound.limit,
            "action": bound.action,
        },
        dedupe_key=f"crossing:{crossing.pk}",
    )
    return crossing


def _act(crossing: Crossing, policy: Policy, made: AdapterVersion | None) -> None:
    """Do what a crossing asks for, or announce it, and say so on it."""
    if crossing.action == Action.ALERT:
        crossing.done = "Nothing was changed."
        crossing.acted_at = timezone.now()
        return
    pauses.hold(policy, actor=ACTOR, reason=crossing.words)
    crossing.done = "Training is paused until somebody resumes it."
    if crossing.action == Action.FALL_BACK and made is not None and made.state == VersionState.CREATED:
        # it was never live: the version before it stays, without asking any engine
        withhold(made, check="drift", reason=crossing.words, actor=ACTOR)
        crossing.done = (
            f"Version {made.number} is withheld, the one before it goes on answering. {crossing.done}"
        )
    elif crossing.action == Action.FALL_BACK and policy.live is not None:
        crossing.done = f"The policy goes back from version {policy.live.number}. {crossing.done}"
        ask_to_fall_back(crossing)
        return
    crossing.acted_at = timezone.now()


def _long_enough(reading: DriftReading, bound: Bound) -> bool:
    """Whether the readings before it were past the bound as well, as many in a row as the bound asks for."""
    if bound.in_a_row == 1:
        return True
    before = (
        DriftReading.objects.filter(policy_id=reading.policy_id, gauge=reading.gauge)
        .exclude(pk=reading.pk)
        .filter(run__isnull=reading.run_id is None, values__has_key=bound.measure)
        .order_by("-created_at")[: bound.in_a_row - 1]
    )
    values = [one.values[bound.measure] for one in before]
    return len(values) == bound.in_a_row - 1 and all(bound.crossed(value) for value in values)
