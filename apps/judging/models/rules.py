"""By which rules turns are judged, at what cost, and who takes no part."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from kernel.tenant_models import TenantModel

MAX_RUBRIC_CHARACTERS = 4_000
MAX_VOTES = 15


class Rubric(TenantModel):
    """What a tenant (or one of its policies) wants replies judged by. Append-only: the newest row counts.

    An empty text is a return to what holds one level above: the tenant's, or the built-in rubric. Postgres
    refuses any change of a row.
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
