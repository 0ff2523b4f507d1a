"""What was made of a turn (judgements, votes, hints), by which rules, at what cost, and who takes no part."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn
from kernel.tenant_models import TenantModel

MAX_RUBRIC_CHARACTERS = 4_000
MAX_VOTES = 15
MAX_REWARD = 1_000.0


class Rubric(TenantModel):
    """What a tenant (or one of its policies) wants replies judged by. Append-only: the newest row counts.

    An empty text is a return to the built-in rubric. Postgres refuses any change of a row.
    """

    policy = models.ForeignKey(
        Policy, null=True, on_delete=models.CASCADE, related_name="rubrics", help_text="None: all of them."
    )
    number = models.PositiveIntegerField(help_text="From 1, counted per tenant.")
    text = models.CharField(blank=True, max_length=MAX_RUBRIC_CHARACTERS)
    actor = models.CharField(max_length=200, help_text="Who wrote it: user:<id> or key:<public id>.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="rubric_number_once_per_tenant")
        ]

    def __str__(self) -> str:
        return f"rubric {self.number}"


class PersonalData(models.TextChoices):
    """What is done where personal data is found."""

    OFF = "off"  # nothing is looked for
    REDACT = "redact"  # judges and hints never see it, its tokens are not trained on
    DROP = "drop"  # the turn is not trained on at all


class JudgeSettings(TenantModel):
    """How turns of a tenant, or of one of its policies, are judged. What is None is as one level above."""

    policy = models.ForeignKey(
        Policy, null=True, on_delete=models.CASCADE, related_name="judge_settings", help_text="None: all."
    )
    votes = models.PositiveSmallIntegerField(
        null=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_VOTES)],
        help_text="Votes of a judgement, count.",
    )
    temperature = models.FloatField(
        null=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Of the judge model, dimensionless.",
    )
    daily_tokens = models.PositiveBigIntegerField(
        null=True, help_text="Judge tokens of a tenant's day (UTC), read and written; 0 is no cap."
    )
    personal_data = models.CharField(max_length=10, choices=PersonalData.choices, blank=True)

    class Meta:
        verbose_name_plural = "judge settings"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "policy"], nulls_distinct=False, name="judge_settings_once"
            ),
            models.CheckConstraint(
                condition=Q(votes__isnull=True) | Q(votes__range=(1, MAX_VOTES)), name="judge_votes_bounds"
            ),
            models.CheckConstraint(
                condition=Q(temperature__isnull=True) | Q(temperature__range=(0.0, 2.0)),
                name="judge_temperature_bounds",
            ),
            models.CheckConstraint(
                condition=Q(personal_data__in=["", *PersonalData.values]), name="judge_personal_data_known"
            ),
            models.CheckConstraint(
                condition=Q(policy__isnull=True) | Q(daily_tokens__isnull=True),
                name="judge_cap_is_the_tenants",
            ),
        ]

    def __str__(self) -> str:
        return f"judge settings of {self.policy_id or self.tenant_id}"


class JudgeSpend(TenantModel):
    """What judging cost a tenant on one day (UTC). Changed only by single statements that keep the cap."""

    day = models.DateField()
    reserved = models.PositiveBigIntegerField(
        default=0, help_text="Tokens set aside for judgements under way: the most they can cost."
    )
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(
        default=0, help_text="Millionths of the currency that the prices are in."
    )
    judgements = models.PositiveIntegerField(default=0)
    abstained = models.PositiveIntegerField(default=0, help_text="Votes that said nothing usable.")
    refused = models.PositiveIntegerField(default=0, help_text="Judgements not made: the cap was reached.")

    class Meta:
        verbose_name_plural = "judge spend"
        constraints = [models.UniqueConstraint(fields=["tenant", "day"], name="judge_spend_once_per_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.prompt_tokens + self.completion_tokens} tokens"


class OptOut(TenantModel):
    """A user or end user whose turns teach nothing, from the beginning until `ended_at`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="opt_outs"
    )
    end_user = models.ForeignKey(EndUser, null=True, on_delete=models.CASCADE, related_name="opt_outs")
    actor = models.CharField(max_length=200)
    ended_at = models.DateTimeField(null=True, help_text="Since then their new turns teach again.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, end_user__isnull=False)
                | Q(user__isnull=False, end_user__isnull=True),
                name="opt_out_of_one_person",
            ),
            models.UniqueConstraint(
                fields=["tenant", "user"],
                condition=Q(ended_at=None, user__isnull=False),
                name="opt_out_user_once",
            ),
            models.UniqueConstraint(
                fields=["tenant", "end_user"],
                condition=Q(ended_at=None, end_user__isnull=False),
                name="opt_out_end_user_once",
            ),
        ]

    def __str__(self) -> str:
        return f"opt-out of {self.user_id or self.end_user_id}"


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
    """One judging of one turn under one judge, prompt, rubric, number of votes and temperature. Old ones are kept."""

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
        indexes = [models.Index(fields=["tenant", "-created_at"], name="judgement_by_tenant")]

    def __str__(self) -> str:
        return f"{self.turn_id}: {self.reward}"


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
    """A window of a policy's turns that is judged once more. How far it is, is counted from the judgements."""

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
