"""Readings of the gauges, crossings of their bounds, and pauses of training."""

from django.db import models
from django.db.models import Q

from apps.adapters.models import AdapterVersion, Policy
from kernel.tenant_models import TenantModel


class Gauge(models.TextChoices):
    """The three gaps."""

    ROLLOUT_LEARNER = "rollout_learner", "rollout ↔ learner"
    ROLLOUT_DEPLOY = "rollout_deploy", "rollout ↔ deploy"
    LEARNER_DEPLOY = "learner_deploy", "learner ↔ deploy"


class Action(models.TextChoices):
    """What a crossing does, besides being told of.

    Who falls back also pauses: the next step would do the same again.
    """

    ALERT = "alert"
    PAUSE = "pause"
    FALL_BACK = "fall_back"


class DriftReading(TenantModel):
    """One gauge of one policy at one run's end, or (without a run) over one week."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="drift_readings")
    gauge = models.CharField(max_length=20, choices=Gauge.choices)
    run = models.ForeignKey(
        "learning.TrainingRun", null=True, on_delete=models.CASCADE, related_name="drift_readings"
    )
    fence = models.PositiveIntegerField(
        default=0, help_text="Of the run as it ended: one that is resumed ends, and is read, once more."
    )
    version = models.ForeignKey(
        AdapterVersion,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The version that the run made; without one, the live version.",
    )
    since = models.DateTimeField(null=True, help_text="Beginning of the window it looks at.")
    until = models.DateTimeField(null=True, help_text="End of that window, exclusive.")
    values = models.JSONField(default=dict, help_text="Measures by name; see `drift.bounds`.")
    detail = models.JSONField(default=dict, help_text="Histograms and counts behind them.")
    bounds = models.JSONField(default=dict, help_text="{measure: [limit, action]} as they held then.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "fence", "gauge"],
                condition=Q(run__isnull=False),
                name="drift_reading_once_per_end_of_a_run",
            ),
            models.UniqueConstraint(
                fields=["policy", "gauge", "until"],
                condition=Q(run__isnull=True),
                name="drift_reading_once_per_week",
            ),
            models.CheckConstraint(condition=Q(gauge__in=Gauge.values), name="drift_gauge_known"),
            models.CheckConstraint(
                condition=Q(run__isnull=False) | Q(since__isnull=False, until__isnull=False),
                name="drift_reading_of_a_run_or_a_week",
            ),
        ]
        indexes = [
            models.Index(fields=["policy", "gauge", "-created_at"], name="drift_reading_by_policy"),
            models.Index(fields=["tenant", "-created_at"], name="drift_reading_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.get_gauge_display()}, {self.created_at:%Y-%m-%d %H:%M}"


class Crossing(TenantModel):
    """A measure went past its bound. Open until it is well inside again, or an operator resumes the policy.

    While it is open, further readings past the bound do nothing new: that is what keeps it from flapping.
    """

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="crossings")
    reading = models.ForeignKey(DriftReading, on_delete=models.CASCADE, related_name="crossings")
    measure = models.CharField(max_length=40)
    value = models.FloatField()
    bound = models.FloatField()
    action = models.CharField(max_length=10, choices=Action.choices)
    words = models.CharField(max_length=500)
    done = models.CharField(max_length=300, blank=True)
    version = models.ForeignKey(
        AdapterVersion, null=True, on_delete=models.SET_NULL, related_name="+", help_text="To fall back from."
    )
    acted_at = models.DateTimeField(null=True, help_text="When what it asks for was done.")
    cleared_at = models.DateTimeField(null=True)
    cleared_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["policy", "measure"], condition=Q(cleared_at__isnull=True), name="crossing_one_open"
            ),
            models.UniqueConstraint(fields=["reading", "measure"], name="crossing_once_per_reading"),
            models.CheckConstraint(condition=Q(action__in=Action.values), name="crossing_action_known"),
            models.CheckConstraint(condition=~Q(words=""), name="crossing_says_what"),
            models.CheckConstraint(
                condition=Q(cleared_at__isnull=True, cleared_by="")
                | (Q(cleared_at__isnull=False) & ~Q(cleared_by="")),
                name="crossing_cleared_by_somebody",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="crossing_by_tenant"),
            models.Index(fields=["created_at"], condition=Q(acted_at=None), name="crossing_to_act"),
        ]

    def __str__(self) -> str:
        return self.words[:80]


class TrainingPause(TenantModel):
    """Training of a policy stands still, and why. Turns are served, judged and kept meanwhile."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="training_pauses")
    reason = models.CharField(max_length=500)
    actor = models.CharField(max_length=200)
    resumed_at = models.DateTimeField(null=True)
    resumed_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["policy"], condition=Q(resumed_at__isnull=True), name="pause_one_open"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="pause_says_why"),
            models.CheckConstraint(
                condition=Q(resumed_at__isnull=True, resumed_by="")
                | (Q(resumed_at__isnull=False) & ~Q(resumed_by="")),
                name="pause_resumed_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="pause_by_tenant")]

    def __str__(self) -> str:
        return self.reason[:80]
