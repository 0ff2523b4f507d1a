"""What was made of a turn: judgements, their votes, hints."""

from django.db import models
from django.db.models import Q

from apps.conversations.models import Turn
from kernel.tenant_models import TenantModel


class JudgementState(models.TextChoices):
    """`pending` until the votes are in; `failed` is a dead letter that can be replayed."""

    PENDING = "pending"
    SETTLED = "settled"
    FAILED = "failed"


class Judgement(TenantModel):
    """One judging of one turn under one judge and rubric version. Old ones are kept."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="judgements")
    judge = models.CharField(max_length=60, help_text="Backend and model.")
    prompt_version = models.CharField(max_length=40)
    state = models.CharField(max_length=10, choices=JudgementState.choices, default=JudgementState.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    reward = models.SmallIntegerField(null=True, help_text="1 good, -1 bad, 0 neutral: the strict majority.")
    source = models.CharField(max_length=20, default="judge", help_text="judge, human or override")
    reason = models.CharField(max_length=500, blank=True)
    claimed_until = models.DateTimeField(null=True, help_text="Somebody is asking the judge until then.")
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["turn", "judge", "prompt_version"], name="judgement_once"),
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
    number = models.PositiveSmallIntegerField()
    score = models.SmallIntegerField(null=True)
    text = models.TextField(blank=True, help_text="The judge's words.")
    abstained_because = models.CharField(max_length=200, blank=True)
    latency_ms = models.FloatField()
    tokens = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judgement", "number"], name="vote_once"),
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
