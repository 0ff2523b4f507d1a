"""How a run ends that came to nothing, or goes back to the queue.

The caller has it locked; `commits` says how it ends well.
"""

import dataclasses
import datetime as dt

from django.db.models import QuerySet
from django.utils import timezone

from apps.alerts import services as alerts
from apps.alerts.models import Event, Severity
from apps.judging.reasons import Reason
from apps.learning import fairness, schedule
from apps.learning.config import TrainingConfig, resolve
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.learning.withdrawn import keep_no_words
from kernel import clock
from kernel.locks import locked


def close(run: TrainingRun, state: RunState, reason: str) -> None:
    """End a run (locked by the caller). An old holder's fence is no longer good for anything."""
    run.state = state
    run.reason = reason[:500]
    run.lease_until = None
    run.finished_at = timezone.now()
    run.save()
    if state == RunState.FAILED:
        alerts.alert(
            tenant_id=run.tenant_id,
            event=Event.RUN_FAILED,
            severity=Severity.WARNING,
            words=f"A training run of {run.policy.name} failed: {run.reason}",
            done="The live version goes on answering; the next run starts by itself after a pause.",
            policy_id=run.policy_id,
            run_id=run.id,
            data={"policy": run.policy.name, "trigger": run.trigger},
            dedupe_key=f"failed:{run.id}:{run.finished_at.isoformat()}",  # one that is resumed may fail again
        )


def requeue(run: TrainingRun, reason: str, *, delay_s: float = 0.0) -> None:
    """Queue a run (locked by the caller) again, not to be taken before `delay_s` seconds, and announce it."""
    run.state = RunState.QUEUED
    run.available_at = clock.now() + dt.timedelta(seconds=delay_s)
    run.reason = reason[:500]
    run.lease_until = None
    run.save()
    schedule.announce(run, delay_s=delay_s)


def held_by(run: TrainingRun) -> QuerySet[Sample]:
    """Return the samples that a run (locked by the caller) holds, locked."""
    return locked(Sample.objects.filter(run=run, state=SampleState.CLAIMED))


def release(run: TrainingRun) -> int:
    """Free the samples that a run (locked by the caller) holds; return how many."""
    ids = list(held_by(run).values_list("id", flat=True))
    return Sample.objects.filter(id__in=ids).update(
        state=SampleState.READY, run=None, staleness=None, weight=1.0
    )


def give_up(run: TrainingRun, config: TrainingConfig, reason: str) -> None:
    """Fail a run (locked by the caller) for good; its samples may be why, so they carry a refusal."""
    close(run, RunState.FAILED, f"gave up after {run.attempts} attempts: {reason}")
    refuse_samples(run, config, reason)


def refuse_samples(run: TrainingRun, config: TrainingConfig, reason: str) -> None:
    """Free a run's samples after a step that was thrown away; set those aside that were in too many."""
    given_up = []
    for sample in held_by(run):
        sample.refusals += 1
        sample.run = None
        sample.staleness = None
        sample.weight = 1.0
        sample.state = SampleState.READY
        if sample.refusals >= config.refusals:
            sample.state = SampleState.DROPPED
            sample.reason = Reason.QUARANTINED.say(f"after {sample.refusals} refused steps: {reason}")
            given_up.append(sample.id)
        sample.save()
    keep_no_words(given_up)


def lose(run: TrainingRun, reason: str, *, delay_s: float = 0.0) -> None:
    """Put a run (locked by the caller) back whose holder is gone, with its samples free;
    its last attempt fails it."""
    config = config_of(run)
    fairness.charge(run)
    if run.attempts >= config.attempts:
        give_up(run, config, reason)
        return
    release(run)
    requeue(run, reason, delay_s=delay_s)


def config_of(run: TrainingRun) -> TrainingConfig:
    """Return the configuration a run was claimed under."""
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    return resolve({name: value for name, value in run.config.items() if name in known})
