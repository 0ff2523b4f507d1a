"""Make the step of one training run: claim, teach in the child, commit."""

import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery.signals import worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from apps.adapters.store import StoreError
from apps.learning import commits, fairness, runs
from apps.learning.commits import StepResult
from apps.learning.runs import Claim, LeaseLost
from kernel.tenancy import tenant_scope
from trainer.codec import ContractError
from trainer.contracts import ProgressEvent, SampleInput
from workers.step_request import sample_input, step_request, step_result
from workers.tasks import task
from workers.trainer_process import RequestRefused, StepStopped, TrainerDied, TrainerProcess, trainer_process

logger = logging.getLogger(__name__)

COMMIT_WAIT_S = 120.0  # how long a finished step waits for a database that is away
LOOK_AHEAD = 16  # runs that are tried in their turn before a message is taken to have come for nothing
PROGRESS_S = 1.0  # between two writes of progress
_LEASE_LOST = "the lease is lost"


@task("workers.training.train")
def train(*, tenant_id: str, run_id: str) -> None:
    """Work on the run whose turn it is. The message only says that one waits, not which."""
    del tenant_id, run_id
    train_next(trainer=trainer_process())


def train_next(*, trainer: TrainerProcess) -> bool:
    """Work on the first run in the tenants' turns that is to be had; False where none is."""
    for waiting in fairness.next_runs(limit=LOOK_AHEAD):
        with tenant_scope(waiting.tenant_id):
            if train_run(run_id=waiting.run_id, trainer=trainer):
                return True
    return False


def train_run(*, run_id: uuid.UUID, trainer: TrainerProcess) -> bool:
    """Claim a run, make its step with `trainer` and commit what came of it. Must run in the tenant's scope.

    False where the run was not to be had: somebody else works on it, or it has ended.
    """
    claim = runs.claim_run(run_id=run_id)
    if claim is None:
        return False
    _work(claim, trainer)
    return True


def _work(claim: Claim, trainer: TrainerProcess) -> None:
    run_id = claim.run.id
    try:
        result = _step(claim, trainer)
    except StepStopped as stopped:
        if stopped.reason != _LEASE_LOST:
            _persist(lambda: runs.put_down(run_id=run_id, fence=claim.fence))
        logger.info("run %s was put down: %s", run_id, stopped.reason)
        return
    except TrainerDied as error:
        reason = str(error)
        logger.warning("run %s goes back to the queue: %s", run_id, reason)
        _persist(lambda: runs.hand_back(run_id=run_id, fence=claim.fence, reason=reason))
        return
    try:
        _persist(lambda: commits.commit_run(run_id=run_id, fence=claim.fence, result=result))
    except LeaseLost as error:
        logger.warning("run %s: the step counts for nothing: %s", run_id, error.message)
    except StoreError as error:
        reason = error.message
        logger.warning("run %s goes back to the queue: %s", run_id, reason)
        _persist(lambda: runs.hand_back(run_id=run_id, fence=claim.fence, reason=reason))


def _step(claim: Claim, trainer: TrainerProcess) -> StepResult:
    """Run the step in the child, keeping the lease meanwhile."""
    samples = _inputs(claim)
    if not samples:
        return StepResult(outcome="no_op", code="no_samples", reason="no sample fits the trainer's contract")
    request = step_request(claim, samples, out_dir=_out_dir(claim))
    keeper = _LeaseKeeper(claim)
    try:
        report = trainer.step(request, deadline_s=claim.config.deadline_s, keep_going=keeper)
    except RequestRefused as error:
        return StepResult(outcome="refused", code="bad_request", reason=str(error))
    lora = request.config.lora
    return step_result(report, rank=lora.rank, alpha=int(lora.alpha))


def _inputs(claim: Claim) -> list[SampleInput]:
    """Return the samples as the trainer takes them; one that it cannot take is set aside with the reason."""
    inputs: list[SampleInput] = []
    for sample in claim.samples:
        try:
            inputs.append(sample_input(sample, default_temperature=claim.policy.temperature))
        except ContractError as error:
            reason = f"not trainable: {error}"
            runs.set_aside(run_id=claim.run.id, fence=claim.fence, sample_id=sample.id, reason=reason)
    return inputs


def _out_dir(claim: Claim) -> Path:
    """Return the version's final directory; an old holder of the run, if it still writes, writes elsewhere."""
    name = f"{claim.number}-{claim.run.id.hex[-8:]}-{claim.fence}"
    return Path(settings.ADAPTER_STORE) / str(claim.policy.tenant_id) / str(claim.policy.id) / name


class _LeaseKeeper:
    """Called while the child works: extends the lease, notes the progress, says when the step is for nothing."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._due = 0.0
        self._written: ProgressEvent | None = None

    def __call__(self, progress: ProgressEvent | None) -> str:
        """Return why to stop, or ""."""
        now = time.monotonic()
        if now < self._due:
            return ""
        fresh = progress if progress is not self._written else None
        self._due = now + min(PROGRESS_S, settings.LEASE_S / 4)
        try:
            held = runs.heartbeat(
                run_id=self._claim.run.id, fence=self._claim.fence, progress=_shown(fresh) if fresh else None
            )
        except (OperationalError, InterfaceError) as error:
            # the commit asks again whether the lease still counts
            logger.warning("no heartbeat: %s", error)
            connection.close()
            return ""
        self._written = progress
        return "" if held else _LEASE_LOST


def _shown(progress: ProgressEvent) -> dict[str, Any]:
    return {
        "phase": progress.phase,
        "done": progress.done,
        "total": progress.total,
        "seconds": progress.seconds,
    }


def _persist(write: Callable[[], object]) -> None:
    """Write to a database that may be away for a while; what cannot be written in time, the lease's end undoes."""
    until = time.monotonic() + COMMIT_WAIT_S
    pause = 0.5
    while True:
        try:
            write()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() + pause > until:
                raise
            logger.warning("waiting %.1f s for the database: %s", pause, error)
            connection.close()
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        else:
            return


def stop_trainer(**_: Any) -> None:
    """End the child, so that a worker that is told to stop does not wait for a whole step."""
    if trainer_process.cache_info().currsize:
        trainer_process().end()


worker_shutting_down.connect(stop_trainer, dispatch_uid="attune-stop-trainer")
worker_shutdown.connect(stop_trainer, dispatch_uid="attune-trainer-gone")
