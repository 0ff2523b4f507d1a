"""What was made of turns: attempts, judgements with their votes and hints,
and windows that are judged once more."""

from django.db import models
from django.db.models import F, Q

from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn
from apps.judging.models.rules import Rubric
from kernel.ids import tail
from kernel.tenant_models import TenantModel

MAX_REWARD = 1_000.0


class Trajectory(TenantModel):
    """One attempt of a hosted agent at a task: a session, and how it came out.

    Rollouts of one task share `task_group` and are compared with each other. `outcome` None: under way.
    """

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="trajectory")
    task = models.CharField(max_length=200)
    task_group = models.CharField(max_length=200)
    outcome = models.FloatField(null=True, help_text="Reward of the whole attempt, dimensionless.")
    recorded_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "trajectories"
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, recorded_at__isnull=True)
                | Q(outcome__isnull=False, recorded_at__isnull=False),
                name="trajectory_recorded_when",
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__range=(-MAX_REWARD, MAX_REWARD)),
                name="trajectory_outcome_bounds",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "task_group"], name="trajectory_by_group")]

    def __str__(self) -> str:
        return f"{self.task}: {self.outcome}"


class JudgementState(models.TextChoices):
    """`pending` until the votes are in; `failed` is a dead letter that can be replayed."""

    PENDING = "pending"
    SETTLED = "settled"
    FAILED = "failed"


class JudgementSource(models.TextChoices):
    """Who said it."""

    JUDGE = "judge"
    OVERRIDE = "override"  # an operator, in place of a judge


class Judgement(TenantModel):
    """One judging of one turn under one judge, prompt, rubric, number of votes and temperature.

    Old ones are kept.
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="judgements")
    judge = models.CharField(max_length=60, help_text="Backend and model; the operator of an override.")
    prompt_version = models.CharField(max_length=40)
    rubric = models.ForeignKey(
        Rubric, null=True, on_delete=models.RESTRICT, related_name="+", help_text="None: the built-in one."
    )
    votes_asked = models.PositiveSmallIntegerField(default=1)
    temperature = models.FloatField(default=0.0, help_text="The judge's; 0 where it has none.")
    state = models.CharField(max_length=10, choices=JudgementState.choices, default=JudgementState.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    reward = models.SmallIntegerField(null=True, help_text="1 good, -1 bad, 0 neutral: the strict majority.")
    source = models.CharField(max_length=20, choices=JudgementSource.choices, default=JudgementSource.JUDGE)
    reason = models.CharField(max_length=500, blank=True)
    claimed_until = models.DateTimeField(null=True, help_text="Somebody is asking the judge until then.")
    settled_at = models.DateTimeField(null=True)
    reserved = models.PositiveIntegerField(
        default=0, help_text="Tokens set aside in the day's spend while the judge is asked."
    )
    reserved_on = models.DateField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["turn", "judge", "prompt_version", "rubric", "votes_asked", "temperature"],
                condition=Q(source=JudgementSource.JUDGE),
                nulls_distinct=False,
                name="judgement_once",
            ),
            models.CheckConstraint(
                condition=Q(source__in=JudgementSource.values), name="judgement_source_known"
            ),
            models.CheckConstraint(
                condition=Q(reserved=0) | Q(reserved_on__isnull=False), name="judgement_reserved_on_a_day"
            ),
            models.CheckConstraint(
                condition=Q(state__in=JudgementState.values), name="judgement_state_known"
            ),
            models.CheckConstraint(
                condition=Q(reward__isnull=True) | Q(reward__in=[-1, 0, 1]), name="judgement_reward_known"
            ),
            models.CheckConstraint(
                condition=~Q(state=JudgementState.SETTLED)
                | Q(settled_at__isnull=False, reward__isnull=False),
                name="judgement_settled_has_reward",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="judgement_by_tenant"),
            models.Index(
                fields=["state"], condition=~Q(state=JudgementState.SETTLED), name="judgement_open_or_dead"
            ),
            models.Index(fields=["settled_at"], name="judgement_by_settling"),
        ]

    def __str__(self) -> str:
        return f"judgement of turn {tail(self.turn_id)}, {self.state}"


class Vote(TenantModel):
    """One answer of a judge. `score` None: it abstained (unparseable, too late, empty)."""

    judgement = models.ForeignKey(Judgement, on_delete=models.CASCADE, related_name="votes")
    attempt = models.PositiveSmallIntegerField(default=1, help_text="Of the judgement; the last one counts.")
    number = models.PositiveSmallIntegerField()
    prompt_version = models.CharField(max_length=40, blank=True)
    score = models.SmallIntegerField(null=True)
    text = models.TextField(blank=True, help_text="The judge's words.")
    abstained_because = models.CharField(max_length=200, blank=True)
    latency_ms = models.FloatField()
    tokens = models.PositiveIntegerField(default=0, help_text="That it wrote.")
    prompt_tokens = models.PositiveIntegerField(default=0, help_text="That it read.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judgement", "attempt", "number"], name="vote_once"),
            models.CheckConstraint(
                condition=Q(score__isnull=True) | Q(score__in=[-1, 0, 1]), name="vote_score_known"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number}: {self.score}"


class Hint(TenantModel):
    """What would have improved a reply, told in hindsight."""

    judgement = models.ForeignKey(Judgement, on_delete=models.CASCADE, related_name="hints")
    number = models.PositiveSmallIntegerField(help_text="1 is the best.")
    text = models.TextField()
    accepted = models.BooleanField()
    reason = models.CharField(max_length=200, blank=True, help_text="Why it was not accepted.")
    by_user = models.BooleanField(
        default=False,
        db_default=False,  # a worker from before the column names none
        help_text="Nothing but what the user said is behind it: it may be kept as that person's wish.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["judgement", "number"], name="hint_once")]

    def __str__(self) -> str:
        return self.text[:80]


class RejudgingState(models.TextChoices):
    """The life of a re-judging."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Rejudging(TenantModel):
    """A window of a policy's turns that is judged once more.

    How far it is, is counted from the judgements.
    """

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="rejudgings")
    rubric = models.ForeignKey(Rubric, null=True, on_delete=models.RESTRICT, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField()
    judge = models.CharField(max_length=60)
    prompt_version = models.CharField(max_length=40)
    votes_asked = models.PositiveSmallIntegerField()
    temperature = models.FloatField()
    state = models.CharField(max_length=10, choices=RejudgingState.choices, default=RejudgingState.RUNNING)
    actor = models.CharField(max_length=200)
    cursor = models.UUIDField(null=True, help_text="Every turn of the window up to this one is judged.")
    total = models.PositiveIntegerField(help_text="Turns in the window when it was asked for.")
    reason = models.CharField(max_length=300, blank=True, help_text="Why it ended early.")
    moved_at = models.DateTimeField(auto_now_add=True, help_text="When it last got further.")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "re-judging"
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "policy",
                    "since",
                    "until",
                    "judge",
                    "prompt_version",
                    "rubric",
                    "votes_asked",
                    "temperature",
                ],
                condition=Q(state=RejudgingState.RUNNING),
                nulls_distinct=False,
                name="rejudging_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=RejudgingState.values), name="rejudging_state_known"
            ),
            models.CheckConstraint(condition=Q(since__lt=F("until")), name="rejudging_window_not_empty"),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="rejudging_by_tenant")]

    def __str__(self) -> str:
        return f"re-judging {self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}"
