"""How a step ends: one transaction in which everything that follows from it becomes true at once."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from apps.adapters import services as adapters
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import TurnKind
from apps.judging.reasons import Reason
from apps.learning import exploration, fairness, schedule
from apps.learning.drift import readings
from apps.learning.endings import close, config_of, held_by, refuse_samples, release, requeue
from apps.learning.models import RewardBaseline, RunState, Sample, SampleState, TrainingRun
from apps.learning.runs import LeaseLost
from apps.learning.withdrawn import withdraw
from kernel import outbox
from kernel.errors import NotFound

RETRY_S = 10.0  # before a failed step is tried again; doubles


@dataclass(frozen=True, slots=True)
class Files:
    """An adapter on the disk: where, the version hash, and its shape."""

    dir: str
    sha256: str
    rank: int
    alpha: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a trainer answered, in this room's words. `files` exactly where the outcome is "made"."""

    outcome: Literal["made", "no_op", "skipped", "refused", "failed"]
    code: str
    reason: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    sample_outcomes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    files: Files | None = None
    trainer_s: float | None = None
    """Seconds that the step took the trainer; None where it did not say."""


def commit_run(*, run_id: uuid.UUID, fence: int, result: StepResult) -> TrainingRun:
    """Make a step's end true: version, consumed samples, baseline,
    run and the wish to publish, or none of them.

    Raises LeaseLost where the fence is not the run's newest: then nothing is changed. A version that was made
    from one that is no longer live is thrown away, and so is one that learned from a sample that was erased
    or may teach no more by now; the other samples are free again.
    """
    with transaction.atomic():
        run = TrainingRun.objects.select_for_update().filter(id=run_id).first()
        if run is None:
            raise NotFound("there is no such run")
        if run.state != RunState.RUNNING or run.fence != fence:
            raise LeaseLost(f"the run is {run.state} under fence {run.fence}, not under {fence}")
        policy = Policy.objects.select_for_update(no_key=True).get(id=run.policy_id)
        run.metrics = dict(result.metrics)
        fairness.charge(run, result.trainer_s)
        withdraw(policy, run=run)
        if result.outcome == "made" and result.files is not None:
            _made(run, policy, result, result.files)
        elif result.outcome in ("no_op", "skipped"):
            _nothing(run, policy, result)
        elif result.outcome == "refused":
            close(run, RunState.FAILED, result.reason)
            refuse_samples(run, config_of(run), result.reason)
        else:
            _failed(run, result)
        if result.outcome != "failed":
            readings.after_step(run, policy=policy, outcomes=result.sample_outcomes)
        return run


def _made(run: TrainingRun, policy: Policy, result: StepResult, files: Files) -> None:
    samples = list(held_by(run))
    gone = len(result.sample_outcomes.keys() - {str(sample.id) for sample in samples})
    why_not = ""
    if policy.live_id != run.parent_id:
        why_not = "the policy moved to another version while this step ran"
    elif gone:
        why_not = f"{gone} of the samples that this step learned from may teach no more"
    if why_not:
        close(run, RunState.CANCELLED, why_not)
        release(run)
        schedule.consider(policy_id=policy.id)
        return
    version = adapters.create_version(
        policy=policy,
        parent=run.parent,
        run_id=run.id,
        artefact_dir=files.dir,
        sha256=files.sha256,
        rank=files.rank,
        alpha=files.alpha,
        metrics=run.metrics,
    )
    now = timezone.now()
    for sample in samples:
        sample.state = SampleState.CONSUMED
        sample.consumed_at = now
        sample.outcome = dict(result.sample_outcomes.get(str(sample.id), {}))
        if sample.source == TurnKind.SHADOW:  # the words stay with the preferences
            sample.hints = [{**hint, "text": "", "prompt_ids": []} for hint in sample.hints]
    written = ["state", "consumed_at", "outcome"]
    others = [sample for sample in samples if sample.source != TurnKind.SHADOW]
    Sample.objects.bulk_update(others, written)
    shadows = [sample for sample in samples if sample.source == TurnKind.SHADOW]
    Sample.objects.bulk_update(shadows, [*written, "hints"])
    run.metrics["down_weighted"] = sum(sample.weight < 1.0 for sample in samples)
    _learn_from(policy, run, result, samples)
    run.version = version
    close(run, RunState.SUCCEEDED, result.reason)
    ask_to_publish(version)


def _nothing(run: TrainingRun, policy: Policy, result: StepResult) -> None:
    """End a run that changed nothing.

    What it was given is not offered again: it would change nothing again.
    """
    samples = list(held_by(run))
    for sample in samples:
        sample.state = SampleState.DROPPED
        sample.outcome = dict(result.sample_outcomes.get(str(sample.id), {}))
        own = str(sample.outcome.get("reason") or "")
        sample.reason = Reason.NOT_TAKEN.say(own or result.reason or result.code)
        if sample.source == TurnKind.SHADOW:  # it is over: the words stay with the preferences
            sample.hints = []
        sample.save()
    _learn_from(policy, run, result, samples)
    close(run, RunState.NO_OP, result.reason)
    schedule.consider(policy_id=policy.id)


def _failed(run: TrainingRun, result: StepResult) -> None:
    """Try again a little later: the surroundings failed, not the samples."""
    config = config_of(run)
    if run.attempts >= config.attempts:
        close(run, RunState.FAILED, result.reason)
        release(run)
        return
    release(run)
    requeue(run, result.reason, delay_s=RETRY_S * 2.0 ** (run.attempts - 1))


def _learn_from(policy: Policy, run: TrainingRun, result: StepResult, samples: Sequence[Sample]) -> None:
    """Keep what a step says of the policy besides its weights:
    the usual reward, how warm it should sample."""
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    exploration.follow(policy=policy, run=run, config=config_of(run), rewards=rewards)
    if result.baseline:
        RewardBaseline.objects.update_or_create(
            policy=policy, defaults={"tenant_id": policy.tenant_id, "state": dict(result.baseline)}
        )


def ask_to_publish(version: AdapterVersion, *, delay_s: float = 0.0) -> None:
    """Announce, in the caller's transaction, that a created version is to be brought live."""
    outbox.enqueue(
        task="workers.publishing.publish",
        queue="ops",
        tenant_id=version.tenant_id,
        kwargs={"version_id": str(version.id)},
        dedupe_key=f"publish:{version.id}",
        delay_s=delay_s,
    )
