"""What a policy learns from: samples, and the runs that consume them."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Turn
from kernel.ids import tail
from kernel.tenant_models import TenantModel


class RunState(models.TextChoices):
    """The life of a training run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"  # made a version
    NO_OP = "no_op"  # nothing to learn: said so, made none
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_RUN_STATES = (RunState.QUEUED, RunState.RUNNING)


class TrainingRun(TenantModel):
    """One step of one policy, under a lease with a fencing token that the commit checks."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="runs")
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    trigger = models.CharField(max_length=60, help_text="threshold, clock, operator:<id> or key:<public id>")
    config = models.JSONField(default=dict, help_text="The exact configuration used.")
    config_number = models.PositiveIntegerField(
        null=True, help_text="The policy's configuration that this was; None until the run was taken."
    )
    parent = models.ForeignKey(AdapterVersion, null=True, on_delete=models.PROTECT, related_name="+")
    version = models.OneToOneField(
        AdapterVersion, null=True, on_delete=models.PROTECT, related_name="made_by_run"
    )
    fence = models.PositiveIntegerField(
        default=0, help_text="Grows with every claim; an old holder cannot commit."
    )
    lease_until = models.DateTimeField(null=True)
    available_at = models.DateTimeField(default=timezone.now, help_text="No trainer takes it before then.")
    attempts = models.PositiveSmallIntegerField(default=0)
    trainer_s = models.FloatField(
        default=0.0, help_text="Seconds that trainers spent on it, every attempt; charged to its tenant."
    )
    progress = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)
    reason = models.CharField(max_length=500, blank=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["policy"], condition=Q(state__in=OPEN_RUN_STATES), name="one_open_run_per_policy"
            ),
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            models.CheckConstraint(condition=Q(trainer_s__gte=0.0), name="run_costs_no_less_than_nothing"),
            models.CheckConstraint(
                condition=~Q(state=RunState.SUCCEEDED) | Q(version__isnull=False),
                name="run_succeeded_has_version",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="run_by_tenant"),
            models.Index(fields=["policy", "-created_at"], name="run_by_policy"),
            models.Index(fields=["finished_at"], name="run_by_end"),
        ]

    def __str__(self) -> str:
        return f"run {tail(self.id)}, {self.state}"


class SampleState(models.TextChoices):
    """The life of a sample. `ineligible` and `dropped` carry a reason."""

    READY = "ready"
    CLAIMED = "claimed"
    CONSUMED = "consumed"
    DROPPED = "dropped"
    INELIGIBLE = "ineligible"


class Sample(TenantModel):
    """What one turn is worth to its policy, at most one per turn; or the stated reason why nothing."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="samples")
    turn = models.OneToOneField(Turn, on_delete=models.CASCADE, related_name="sample")
    source = models.CharField(max_length=10, help_text="The turn's kind: live, rollout or shadow.")
    state = models.CharField(max_length=10, choices=SampleState.choices, default=SampleState.READY)
    reason = models.CharField(max_length=200, blank=True)
    reward = models.FloatField(null=True, help_text="Process reward: what was said of the reply.")
    rollout_outcome = models.FloatField(null=True, help_text="Reward of the whole attempt it belongs to.")
    rollout_group = models.CharField(
        max_length=200, blank=True, help_text="Attempts at one task carry the same word."
    )
    rollout_step = models.PositiveIntegerField(default=0, help_text="Which turn of its attempt, from 0.")
    hints = models.JSONField(default=list, help_text="[{text, prompt_ids}…], best first, at most three.")
    version = models.ForeignKey(AdapterVersion, null=True, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(TrainingRun, null=True, on_delete=models.SET_NULL, related_name="samples")
    staleness = models.PositiveIntegerField(
        null=True, help_text="Steps along the lineage when it was consumed."
    )
    weight = models.FloatField(
        default=1.0, help_text="How much it counts in its step; less where it is stale."
    )
    refusals = models.PositiveSmallIntegerField(
        default=0, help_text="Steps that were thrown away with it in the batch."
    )
    outcome = models.JSONField(default=dict, help_text="What the step did with it.")
    consumed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=SampleState.values), name="sample_state_known"),
            models.CheckConstraint(
                condition=~Q(state__in=[SampleState.CLAIMED, SampleState.CONSUMED]) | Q(run__isnull=False),
                name="sample_taken_by_a_run",
            ),
            models.CheckConstraint(
                condition=Q(state=SampleState.CONSUMED, consumed_at__isnull=False)
                | (~Q(state=SampleState.CONSUMED) & Q(consumed_at__isnull=True)),
                name="sample_consumed_when",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[SampleState.DROPPED, SampleState.INELIGIBLE]) | ~Q(reason=""),
                name="sample_left_out_says_why",
            ),
            models.CheckConstraint(condition=Q(weight__gt=0.0, weight__lte=1.0), name="sample_weight_bounds"),
        ]
        indexes = [
            models.Index(fields=["policy", "state", "created_at"], name="sample_by_policy_and_state"),
            models.Index(fields=["tenant", "-created_at"], name="sample_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"sample of turn {tail(self.turn_id)}, {self.state}"


class RewardBaseline(TenantModel):
    """The reward a policy is used to (exponential mean), moved only by a committed step."""

    policy = models.OneToOneField(Policy, on_delete=models.CASCADE, related_name="baseline")
    state = models.JSONField(default=dict)

    def __str__(self) -> str:
        return str(self.state)


class TrainerAccount(TenantModel):
    """What a tenant used of the trainers, and whether it is its turn (`rules.round_robin`)."""

    deficit_s = models.FloatField(help_text="Seconds it may still use in this round; below 0 it owes.")
    used_s = models.FloatField(default=0.0, help_text="Trainer seconds charged so far: the sum of its runs'.")
    typical_s = models.FloatField(
        default=0.0, help_text="What a run costs as a rule: a moving mean, seconds."
    )
    served_at = models.DateTimeField(null=True, help_text="When a run of it was last begun.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="trainer_account_once_per_tenant"),
            models.CheckConstraint(
                condition=Q(used_s__gte=0.0, typical_s__gte=0.0), name="trainer_account_is_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.deficit_s:.1f} s left, {self.used_s:.1f} s used"


class RolloutGate(TenantModel):
    """Counts what `attune_admit_rollout` decided for a policy;
    locking it makes the decisions one after another."""

    policy = models.OneToOneField(Policy, on_delete=models.CASCADE, related_name="rollout_gate")
    admitted = models.PositiveBigIntegerField(default=0, help_text="Rollouts that began: one turn row each.")
    refused = models.PositiveBigIntegerField(
        default=0, help_text="Rollouts that were told to come back later."
    )

    def __str__(self) -> str:
        return f"{self.admitted} admitted, {self.refused} refused"
