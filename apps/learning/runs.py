"""Training runs: who may work on one, for how long, and how it is given up.

`commits` says how it ends well.
"""

import dataclasses
import datetime as dt
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from apps.accounts import pausing
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import TurnKind
from apps.learning import fairness, schedule
from apps.learning.config import TrainingConfig, resolve
from apps.learning.drift.pauses import why_paused
from apps.learning.endings import close, give_up, lose, release, requeue
from apps.learning.models import OPEN_RUN_STATES, RewardBaseline, RunState, Sample, SampleState, TrainingRun
from apps.learning.withdrawn import keep_no_words
from kernel import audit, clock
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.tenancy import tenant_scope

logger = logging.getLogger(__name__)

PUBLISH_WAIT_S = 2.0  # before a run looks again whether the version before it is live


class LeaseLost(Conflict):
    """Somebody else holds the run, or it has ended:
    whatever was done under the old lease counts for nothing."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that the caller may work on until its lease ends, and everything the step needs."""

    run: TrainingRun
    policy: Policy
    fence: int
    config: TrainingConfig
    parent: AdapterVersion | None
    number: int
    """Number of the version to be made."""
    samples: tuple[Sample, ...]
    """With their turns, oldest first; `staleness` and `weight` are set."""
    baseline: dict[str, Any]
    """The reward baseline's state before the step; empty before the first."""


def request_run(*, policy: Policy, actor: str) -> TrainingRun:
    """Queue a run for whatever samples wait, however few (an operator's or a key's wish); audited.

    People's own go before shadow ones: a batch is of one sort.
    `actor` is "user:<id>" or "key:<public id>". Raises Conflict where training is switched off, no sample
    waits (`no_samples`) or the policy has an open run (`run_under_way`), Forbidden where the tenant is
    paused, InvalidInput where its configuration is not valid.
    """
    with transaction.atomic():
        resolve(policy.config)
        _refuse_while_off(policy)
        if not Sample.objects.filter(policy=policy, state=SampleState.READY).exists():
            raise Conflict(f"no sample of {policy.name} waits: there is nothing to learn", code="no_samples")
        trigger = _asked_by(actor)
        run = schedule.create_run(policy, trigger)
        if run is None:
            raise Conflict(f"the policy {policy.name} has a run under way", code="run_under_way")
        audit.record(
            actor=actor,
            action="run.request",
            target=f"run:{run.id}",
            tenant_id=policy.tenant_id,
            detail={"policy": policy.name, "trigger": trigger},
        )
    return run


def resume_run(*, run_id: uuid.UUID, actor: str) -> TrainingRun:
    """Queue a failed or cancelled run again, with all its tries, for whatever samples wait now; audited.

    Raises Conflict where it ended another way, training is switched off or paused, no sample waits or its
    policy has another run under way, Forbidden where the tenant is paused.
    """
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update().filter(id=run_id).first()
        if run is None:
            raise NotFound("there is no such run")
        if run.state not in (RunState.FAILED, RunState.CANCELLED):
            raise Conflict(f"the run is {run.state}, only failed and cancelled ones are resumed")
        _refuse_while_off(run.policy)
        if not Sample.objects.filter(policy_id=run.policy_id, state=SampleState.READY).exists():
            raise Conflict("no sample waits: there is nothing to learn", code="no_samples")
        before = {"state": run.state, "reason": run.reason, "trigger": run.trigger}
        run.trigger = _asked_by(actor)
        run.attempts = 0
        run.finished_at = None
        try:
            with transaction.atomic():
                requeue(run, "")
        except IntegrityError:
            raise Conflict("the policy has another run under way", code="run_under_way") from None
        audit.record(
            actor=actor, action="run.resume", target=f"run:{run.id}", tenant_id=run.tenant_id, detail=before
        )
    return run


def cancel_run(*, run_id: uuid.UUID, actor: str) -> TrainingRun:
    """End an open run without a version and free its samples; audited. Its worker finds out by heartbeat."""
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update().filter(id=run_id).first()
        if run is None:
            raise NotFound("there is no such run")
        if run.state not in OPEN_RUN_STATES:
            raise Conflict(f"the run is {run.state}, only queued and running ones are cancelled")
        if run.state == RunState.RUNNING:
            fairness.charge(run)
        close(run, RunState.CANCELLED, f"cancelled by {actor}")
        release(run)
        audit.record(actor=actor, action="run.cancel", target=f"run:{run.id}", tenant_id=run.tenant_id)
    return run


def claim_run(*, run_id: uuid.UUID, wanted: Callable[["Claim"], bool] | None = None) -> Claim | None:
    """Take a queued run (or one whose holder's lease ran out) under a new fence;
    None where it is not to be had.

    With `wanted`, only a run that nobody has tried yet and of whose claim it says yes; another stays in the
    queue.

    The samples are chosen and claimed here, the oldest first; those that are stale or on another branch
    are set aside. A run for which too little is left ends at once, and says so.
    """
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update(skip_locked=True).filter(id=run_id).first()
        now = clock.now()
        if run is None or not _claimable(run, now):
            return None
        if wanted is not None and run.attempts:
            return None
        policy = (
            Policy.objects.select_for_update(of=("self",), no_key=True)
            .select_related("tenant", "live")
            .get(id=run.policy_id)
        )
        if policy.tenant.is_paused:
            return None  # it waits, with its place in the queue
        if run.state == RunState.RUNNING:
            fairness.charge(run)  # the holder that went silent
        batch = _batch(run, policy)
        if batch is None:
            return None
        config, samples = batch
        baseline = RewardBaseline.objects.filter(policy=policy).first()
        newest = AdapterVersion.objects.filter(policy=policy).order_by("-number").first()
        claim = Claim(
            run=run,
            policy=policy,
            fence=run.fence + 1,
            config=config,
            parent=policy.live,
            number=newest.number + 1 if newest else 1,
            samples=tuple(samples),
            baseline=baseline.state if baseline else {},
        )
        if wanted is not None and not wanted(claim):
            return None
        run.state = RunState.RUNNING
        run.fence = claim.fence
        run.attempts += 1
        run.config = config.to_json()
        run.config_number = policy.config_number  # the policy's row is locked: these are one configuration
        run.parent = policy.live
        run.progress = {}
        run.started_at = now
        run.lease_until = now + dt.timedelta(seconds=settings.LEASE_S)
        run.save()
        fairness.begin(run)
        for sample in samples:
            sample.state = SampleState.CLAIMED
            sample.run = run
        Sample.objects.bulk_update(samples, ["state", "run", "staleness", "weight"])
        return claim


def heartbeat(*, run_id: uuid.UUID, fence: int, progress: dict[str, Any] | None = None) -> bool:
    """Extend the lease and note the progress; False where the lease is no longer
    the caller's: stop working."""
    values: dict[str, Any] = {"lease_until": clock.now() + dt.timedelta(seconds=settings.LEASE_S)}
    if progress is not None:
        values["progress"] = progress
    return bool(TrainingRun.objects.filter(id=run_id, fence=fence, state=RunState.RUNNING).update(**values))


def hand_back(*, run_id: uuid.UUID, fence: int, reason: str, delay_s: float = 0.0) -> None:
    """Put a run back into the queue with its samples free: its worker is going away or its trainer died.

    The attempt counts; the last one fails the run. A lease that was lost already is left alone.
    """
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update().filter(id=run_id).first()
        if run is None or run.state != RunState.RUNNING or run.fence != fence:
            return
        lose(run, reason, delay_s=delay_s)


def put_down(*, run_id: uuid.UUID, fence: int) -> None:
    """As `hand_back`, for a worker that is told to stop: the attempt does not count."""
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update().filter(id=run_id).first()
        if run is None or run.state != RunState.RUNNING or run.fence != fence:
            return
        run.attempts = max(0, run.attempts - 1)
        fairness.charge(run)
        release(run)
        requeue(run, "")


def set_aside(*, run_id: uuid.UUID, fence: int, sample_id: uuid.UUID, reason: str) -> None:
    """Drop one sample of a run that the caller holds: the trainer cannot take it."""
    held = Sample.objects.filter(
        id=sample_id, run_id=run_id, run__fence=fence, run__state=RunState.RUNNING, state=SampleState.CLAIMED
    )
    with transaction.atomic():
        if held.update(state=SampleState.DROPPED, reason=reason[:200]):
            keep_no_words([sample_id])


def expire_leases() -> int:
    """Put back the runs in scope whose holder went silent; return how many there were.

    Each in a transaction of its own: tenants' accounts are locked one at a time, and one run that cannot be
    put back (the next trainer takes it as it is) keeps no other from it.
    """
    silent = TrainingRun.objects.filter(state=RunState.RUNNING, lease_until__lt=clock.now())
    expired = 0
    for tenant_id, run_id in list(silent.order_by("id").values_list("tenant_id", "id")):
        try:
            with tenant_scope(tenant_id), transaction.atomic():
                run = silent.select_for_update(skip_locked=True).filter(id=run_id).first()
                if run is not None:
                    lose(run, "its worker went silent")
                    expired += 1
        except InvalidInput as error:
            logger.warning("run %s cannot be put back: %s", run_id, error.message)
    return expired


def _refuse_while_off(policy: Policy) -> None:
    pausing.refuse_while_paused(policy.tenant_id)
    if not (policy.training_enabled and policy.tenant.training_enabled):
        raise Conflict(f"training of {policy.name} is switched off", code="training_off")
    if paused := why_paused(policy.id):
        raise Conflict(f"training of {policy.name} is paused: {paused}", code="training_paused")


def _asked_by(actor: str) -> str:
    """Return how a run names who wished for it."""
    kind, _, who = actor.partition(":")
    return (f"operator:{who}" if kind == "user" else actor)[:60]


def _batch(run: TrainingRun, policy: Policy) -> tuple[TrainingConfig, list[Sample]] | None:
    """Return the configuration and samples (with their staleness) of a locked run;
    None where it ends or waits."""
    try:
        config = resolve(policy.config)
    except InvalidInput as error:
        close(run, RunState.FAILED, error.message)
        release(run)
        return None
    if run.attempts >= config.attempts:
        give_up(run, config, run.reason or "every worker that took it went away")
        return None
    release(run)
    if off := _why_off(policy):
        close(run, RunState.CANCELLED, off)
        return None
    if schedule.awaits_publishing(policy):
        requeue(run, run.reason, delay_s=PUBLISH_WAIT_S)
        return None
    whole = run.trigger == "threshold"
    samples = schedule.pick(policy, config, schedule.prune(policy, config), run=run)
    if not samples or (whole and len(samples) < config.batch_size):
        none = "what it was for waits no more" if run.trigger == "clock" else "no samples wait"
        few = f"{len(samples)} samples wait, a batch is {config.batch_size}" if samples else none
        close(run, RunState.NO_OP, few)
        return None
    if samples[0].source == TurnKind.SHADOW:  # then all of them are
        config = dataclasses.replace(config, epochs=config.shadow_epochs)
    return config, samples


def _why_off(policy: Policy) -> str:
    if not (policy.training_enabled and policy.tenant.training_enabled):
        return "training is switched off"
    paused = why_paused(policy.id)
    return f"training is paused: {paused}" if paused else ""


def _claimable(run: TrainingRun, now: dt.datetime) -> bool:
    if run.state == RunState.QUEUED:
        return True
    return run.state == RunState.RUNNING and run.lease_until is not None and run.lease_until < now
