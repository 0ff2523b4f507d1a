"""Steps whose trainer measured what a test says, and what came of them."""

from collections.abc import Callable
from typing import Any

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.alerts.models import Alert
from apps.learning import commits
from apps.learning.commits import StepResult
from apps.learning.drift.models import DriftReading, Gauge
from apps.learning.models import Sample, TrainingRun
from apps.learning.runs import Claim, claim_run
from tests.apps.learning.artefacts import write_files
from tests.apps.learning.ledger import add_samples, made, queue_run
from tests.tenants import Somebody

CALM = {
    "train_rollout_logprob_abs_diff": 0.04,
    "rollout_k3": 0.002,
    "ratio_mean": 1.0,
    "ratio_max": 1.4,
    "ess": 0.97,
    "clip_fraction": 0.0,
    "mask_fraction": 0.0,
    "step_k3": 0.02,
    "step_logprob_abs_diff": 0.05,
    "lr": 4e-4,
    "staleness": {"0": 8},
}


def step(
    somebody: Somebody,
    *,
    outcome: str = "made",
    samples: int = 8,
    each: Callable[[Sample], None] = lambda _: None,
    trigger: str = "threshold",
    **measured: Any,
) -> TrainingRun:
    """Make one step whose trainer measured this; a version that it made becomes live unless it is withheld.

    `each` may change a sample before the step takes it.
    """
    for sample in add_samples(somebody, samples, version=Policy.objects.get(pk=somebody.policy.pk).live):
        each(sample)
    run = queue_run(somebody, trigger)
    claim = claim_run(run_id=run.id)
    assert claim is not None
    run = commits.commit_run(run_id=run.id, fence=claim.fence, result=result(claim, outcome, **measured))
    if run.version is not None and run.version.state == VersionState.CREATED:
        AdapterVersion.objects.filter(pk=run.version_id).update(state=VersionState.READY)
        Policy.objects.filter(pk=run.policy_id).update(live=run.version)
    return run


def result(claim: Claim, outcome: str = "made", **measured: Any) -> StepResult:
    metrics = {**CALM, **measured}
    said = {
        str(sample.id): {
            "parts": ["rl"],
            "tokens": len(sample.turn.output_ids),
            "logprob_abs_diff": 0.04 + 0.1 * (sample.staleness or 0),
        }
        for sample in claim.samples
    }
    if outcome == "made":
        whole = made(claim, *write_files(claim))
        return StepResult(
            outcome="made",
            code="ok",
            reason="a version was made",
            metrics=metrics,
            sample_outcomes=said,
            files=whole.files,
        )
    return StepResult(
        outcome=outcome,  # type: ignore[arg-type]
        code=outcome,
        reason=f"it was {outcome}",
        metrics=metrics,
        sample_outcomes=said,
    )


def configure(somebody: Somebody, **drift: Any) -> None:
    Policy.objects.filter(pk=somebody.policy.pk).update(config={"drift": drift})


def reading(run: TrainingRun) -> DriftReading:
    return DriftReading.objects.get(run=run, gauge=Gauge.ROLLOUT_LEARNER)


def live(somebody: Somebody) -> int:
    policy = Policy.objects.select_related("live").get(pk=somebody.policy.pk)
    return policy.live.number if policy.live else 0


def alerts() -> list[str]:
    rows = Alert.objects.exclude(event__in=["version.live", "run.failed"]).order_by("id")
    return [row.event for row in rows]
