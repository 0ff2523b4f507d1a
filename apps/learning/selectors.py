"""Read how a policy's learning stands: always from the rows, so a restart changes no number."""

import uuid

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.adapters.models import Policy
from apps.learning.models import OPEN_RUN_STATES, Sample, SampleState, TrainingRun


def left_out(policy_id: uuid.UUID) -> dict[str, int]:
    """Return how many of the policy's turns taught nothing, by stated reason."""
    rows = (
        Sample.objects.filter(policy_id=policy_id, state__in=[SampleState.INELIGIBLE, SampleState.DROPPED])
        .values_list("reason")
        .annotate(n=Count("id"))
        .order_by("-n", "reason")
    )
    return dict(rows)


def open_run(policy_id: uuid.UUID) -> TrainingRun | None:
    """Return the policy's queued or running run."""
    return TrainingRun.objects.filter(policy_id=policy_id, state__in=OPEN_RUN_STATES).first()


def stale(policy_id: uuid.UUID) -> dict[str, int]:
    """Return how many of the policy's samples were past the staleness bound:
    dropped, or consumed with less weight."""
    samples = Sample.objects.filter(policy_id=policy_id)
    return {
        "dropped": samples.filter(state=SampleState.DROPPED, reason__startswith="stale:").count(),
        "down_weighted": samples.filter(state=SampleState.CONSUMED, weight__lt=1.0).count(),
    }


def with_sample_counts(runs: QuerySet[TrainingRun]) -> QuerySet[TrainingRun]:
    """Add `n_samples`, counted for the rows that are returned and for no other."""
    counted = (
        Sample.objects.filter(run=OuterRef("pk")).order_by().values("run").annotate(n=Count("pk")).values("n")
    )
    return runs.annotate(n_samples=Coalesce(Subquery(counted, output_field=IntegerField()), Value(0)))


def with_ready_counts(policies: QuerySet[Policy]) -> QuerySet[Policy]:
    """Add `n_ready`, the samples that wait; counted from the queue's index, however many were trained on."""
    waiting = (
        Sample.objects.filter(policy=OuterRef("pk"), state=SampleState.READY)
        .order_by()
        .values("policy")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return policies.annotate(n_ready=Coalesce(Subquery(waiting, output_field=IntegerField()), Value(0)))
