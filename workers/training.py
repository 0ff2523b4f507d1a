"""Make the steps of training runs: claim, teach in the child, commit."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from celery.signals import worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from apps.adapters.store import StoreError
from apps.judging.reasons import Reason
from apps.learning import commits, fairness, runs
from apps.learning.commits import StepResult
from apps.learning.runs import Claim, LeaseLost
from kernel.tenancy import tenant_scope
from trainer.codec import ContractError
from trainer.contracts import (
    TOGETHER_AT_MOST,
    SampleInput,
    StepReport,
    StepRequest,
    StepsRequest,
    shares_a_pass,
)
from workers.leases import LeaseKeeper
from workers.step_request import lora_spec, sample_input, step_request, step_result
from workers.tasks import task
from workers.trainer_process import RequestRefused, StepStopped, TrainerDied, TrainerProcess, trainer_process

logger = logging.getLogger(__name__)

COMMIT_WAIT_S = 120.0  # how long a finished step waits for a database that is away
LOOK_AHEAD = 16  # runs that are tried in their turn before a message is taken to have come for nothing


@task("workers.training.train")
def train(*, tenant_id: str, run_id: str) -> None:
    """Work on the run whose turn it is. The message only says that one waits, not which."""
    del tenant_id, run_id
    train_next(trainer=trainer_process())


def train_next(*, trainer: TrainerProcess) -> bool:
    """Work on the first run in the tenants' turns that is to be had,
    and with it on small ones; False where none is."""
    claims = _claim_next()
    if claims:
        work_on(claims, trainer)
    return bool(claims)


def work_on(claims: Sequence[Claim], trainer: TrainerProcess) -> None:
    """Make the steps of claimed runs, several in one pass of the base, and commit each by itself.

    Each has its own lease and fence, and ends as it would alone: one's refusal, lost lease or commit that
    fails is no other's. Where the child dies all go back to the queue, and none of them is in company a
    second time.
    """
    members = []
    for claim in claims:
        try:
            member = _prepared(claim)
        except (
            Exception
        ) as error:  # a fault in one's rows must not leave the others waiting for their leases' end
            logger.exception("run %s cannot be asked for", claim.run.id)
            _hand_back(claim, f"{type(error).__name__}: {error}")
        else:
            members += [member] if member is not None else []
    if members:
        _teach(members, trainer)


def _claim_next() -> list[Claim]:
    """Claim the first run in turn that is to be had;
    where it is small, others behind it that may share its pass."""
    held: list[Claim] = []
    for waiting in fairness.next_runs(limit=LOOK_AHEAD):
        try:
            with tenant_scope(waiting.tenant_id):
                claim = runs.claim_run(run_id=waiting.run_id, wanted=_likes(held[0]) if held else None)
        except (OperationalError, InterfaceError) as error:
            if not held:
                raise
            logger.warning("no more runs are taken along: %s", error)
            connection.close()
            break
        except Exception:  # a fault in one's rows must not hold up every tenant behind it
            logger.exception("run %s cannot be claimed", waiting.run_id)
            continue
        if claim is not None:
            held.append(claim)
        if held and (len(held) >= _most() or not _sociable(held[0])):
            break
    return held


def _most() -> int:
    """How many runs may share a pass: replicas divide a policy's own sequences, so there each goes alone."""
    shared_by = settings.TRAINER_TENSOR_PARALLEL or settings.TRAINER_RANKS
    return TOGETHER_AT_MOST if shared_by == settings.TRAINER_RANKS else 1


def _sociable(claim: Claim) -> bool:
    """Whether a claimed run may share a pass: small, and tried for the first time,
    so that a step that kills the child does so to others once."""
    return claim.run.attempts == 1 and _small(claim)


def _small(claim: Claim) -> bool:
    tokens = sum(len(sample.turn.prompt_ids) + len(sample.turn.output_ids) for sample in claim.samples)
    return shares_a_pass(tokens=tokens, updates=claim.config.updates * claim.config.epochs)


def _likes(first: Claim) -> Callable[[Claim], bool]:
    """Say of a claim whether it may share the pass of `first`:
    it is small, and its adapter has the same shape."""

    def wanted(claim: Claim) -> bool:
        return _small(claim) and lora_spec(claim.parent) == lora_spec(first.parent)

    return wanted


def _prepared(claim: Claim) -> tuple[Claim, StepRequest] | None:
    """Return what the child is asked for a claim; None where it has ended already."""
    with tenant_scope(claim.policy.tenant_id):
        samples = _inputs(claim)
        if samples:
            return claim, step_request(claim, samples, out_dir=_out_dir(claim))
        reason = "no sample fits the trainer's contract"
        _commit(claim, StepResult(outcome="no_op", code="no_samples", reason=reason))
        return None


def _teach(
    members: Sequence[tuple[Claim, StepRequest]], trainer: TrainerProcess, *, waiting: Sequence[Claim] = ()
) -> None:
    """Run the steps in the child, keeping the leases meanwhile, and end each run as its report says.

    `waiting`: claims whose turn comes after these; their leases are kept as well.
    """
    claims = [claim for claim, _ in members]
    deadline_s = max(claim.config.deadline_s for claim in claims)
    try:
        if len(members) == 1:
            request = members[0][1]
            keeper = LeaseKeeper([*claims, *waiting])
            reports = {request.run_id: trainer.step(request, deadline_s=deadline_s, keep_going=keeper)}
        else:
            together = StepsRequest(
                run_id=f"{claims[0].run.id} and company", steps=tuple(request for _, request in members)
            )
            reports = trainer.steps(together, deadline_s=deadline_s, keep_going=LeaseKeeper(claims))
    except StepStopped as stopped:
        for claim in claims:
            logger.info("run %s was put down: %s", claim.run.id, stopped.reason)
            _persist(claim, partial(runs.put_down, run_id=claim.run.id, fence=claim.fence))
    except TrainerDied as error:
        for claim in claims:
            _hand_back(claim, str(error))
    except RequestRefused as error:
        if len(members) == 1:
            refused = StepResult(outcome="refused", code="bad_request", reason=str(error))
            _commit(claims[0], refused)
            return
        for number, member in enumerate(members, start=1):
            _teach([member], trainer, waiting=claims[number:])
    else:
        _commit_each([(claim, request, reports[request.run_id]) for claim, request in members])


def _commit_each(ended: Sequence[tuple[Claim, StepRequest, StepReport]]) -> None:
    failures: list[Exception] = []
    for claim, request, report in ended:
        lora = request.config.lora
        try:
            _commit(claim, step_result(report, rank=lora.rank, alpha=int(lora.alpha)))
        except Exception as error:  # raised below: the other runs are committed first
            logger.exception("run %s could not be committed", claim.run.id)
            failures.append(error)
    if failures:
        raise failures[0]


def _commit(claim: Claim, result: StepResult) -> None:
    run_id = claim.run.id
    try:
        _persist(claim, partial(commits.commit_run, run_id=run_id, fence=claim.fence, result=result))
    except LeaseLost as error:
        logger.warning("run %s: the step counts for nothing: %s", run_id, error.message)
    except StoreError as error:
        _hand_back(claim, error.message)


def _hand_back(claim: Claim, reason: str) -> None:
    logger.warning("run %s goes back to the queue: %s", claim.run.id, reason)
    _persist(claim, partial(runs.hand_back, run_id=claim.run.id, fence=claim.fence, reason=reason))


def _inputs(claim: Claim) -> list[SampleInput]:
    """Return the samples as the trainer takes them; one that it cannot take is set aside with the reason."""
    inputs: list[SampleInput] = []
    for sample in claim.samples:
        try:
            inputs.append(sample_input(sample, default_temperature=claim.policy.temperature))
        except ContractError as error:
            reason = Reason.NOT_TAKEN.say(str(error))
            aside = partial(runs.set_aside, run_id=claim.run.id, fence=claim.fence)
            _persist(claim, partial(aside, sample_id=sample.id, reason=reason))
    return inputs


def _out_dir(claim: Claim) -> Path:
    """Return the version's final directory; an old holder of the run,
    if it still writes, writes elsewhere."""
    name = f"{claim.number}-{claim.run.id.hex[-8:]}-{claim.fence}"
    return Path(settings.ADAPTER_STORE) / str(claim.policy.tenant_id) / str(claim.policy.id) / name


def _persist(claim: Claim, write: Callable[[], object]) -> None:
    """Write to a database that may be away for a while;
    what cannot be written in time, the lease's end undoes."""
    until = time.monotonic() + COMMIT_WAIT_S
    pause = 0.5
    while True:
        try:
            with tenant_scope(claim.policy.tenant_id):
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
