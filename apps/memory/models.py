"""Preferences of people, what they rest on, and how a policy uses them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q

from apps.accounts.models import EndUser
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Turn
from apps.memory.text import LONGEST
from kernel.tenant_models import TenantModel


class PreferenceState(models.TextChoices):
    """The life of a preference. Only `active` ones are told to the model."""

    ACTIVE = "active"
    LEARNED = "learned"  # the weights hold it: it left the prompt
    SUPERSEDED = "superseded"  # the same person said the opposite, or the same more exactly, later
    DELETED = "deleted"  # a tombstone without words


MOST_BUDGET_TOKENS = 4096
"""Of a prompt, for entries of memory."""
MOST_SHADOW_TOKENS = 2_000_000_000
"""Of 24 hours."""
LAST_HOUR = 23
HOLDING = (PreferenceState.ACTIVE, PreferenceState.LEARNED)
KEPT = (PreferenceState.ACTIVE, PreferenceState.LEARNED, PreferenceState.SUPERSEDED)


class Source(models.TextChoices):
    """Where a preference was first seen."""

    HINT = "hint"
    CORRECTION = "correction"
    TYPED = "typed"


class Preference(TenantModel):
    """One thing that one person wants of one policy's replies.

    The person is the key's user or, where the request names one, that user's end user.
    """

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="preferences")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(EndUser, null=True, on_delete=models.CASCADE, related_name="preferences")
    state = models.CharField(max_length=10, choices=PreferenceState.choices, default=PreferenceState.ACTIVE)
    source = models.CharField(max_length=10, choices=Source.choices)
    own_words = models.CharField(
        max_length=LONGEST,
        blank=True,
        help_text="What a person typed; empty: the words of the oldest evidence count.",
    )
    fingerprint = models.CharField(
        max_length=64,
        help_text="SHA-256 of what is compared: word stems in order; a mark of that in a tombstone.",
    )
    topics = ArrayField(
        models.CharField(max_length=60), default=list, help_text="topic:pole of what it speaks about."
    )
    buried = ArrayField(
        models.CharField(max_length=64),
        default=list,
        db_default=[],  # a process from before the column names none
        help_text="Marks of a tombstone's topics, which cannot be read.",
    )
    general = models.BooleanField(
        default=True,
        help_text="Off: it may be about one answer only, and is told once two sessions said it.",
    )
    pinned = models.BooleanField(
        default=False,
        help_text="Comes first, is told until it is unpinned, and nothing that is overheard replaces it.",
    )
    revision = models.PositiveIntegerField(
        default=1, help_text="Grows with every edit, and where it is asked for again after it was not told."
    )
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="supersedes")
    held_by = models.ForeignKey(
        AdapterVersion,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The version that showed that it need not be told.",
    )
    held_since = models.DateTimeField(null=True, help_text="Since when no prompt is told of it.")
    reason = models.CharField(max_length=200, blank=True, help_text="Why it is in its state.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["policy", "user", "end_user", "fingerprint"],
                condition=Q(state__in=KEPT),
                nulls_distinct=False,
                name="preference_once_per_person",
            ),
            models.CheckConstraint(
                condition=Q(state__in=PreferenceState.values), name="preference_state_known"
            ),
            models.CheckConstraint(condition=Q(source__in=Source.values), name="preference_source_known"),
            models.CheckConstraint(
                condition=~Q(state=PreferenceState.DELETED) | Q(own_words="", topics=[], pinned=False),
                name="preference_deleted_has_no_words",
            ),
            models.CheckConstraint(
                condition=~Q(state=PreferenceState.LEARNED) | Q(pinned=False),
                name="preference_pinned_is_told",
            ),
            models.CheckConstraint(
                condition=Q(state=PreferenceState.DELETED) | Q(buried=[]),
                name="preference_marked_once_deleted",
            ),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | Q(state=PreferenceState.SUPERSEDED),
                name="preference_superseded_by_what",
            ),
            models.CheckConstraint(
                condition=Q(state=PreferenceState.LEARNED, held_since__isnull=False)
                | (~Q(state=PreferenceState.LEARNED) & Q(held_since__isnull=True)),
                name="preference_learned_since_when",
            ),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | ~Q(superseded_by=F("id")),
                name="preference_not_superseded_by_itself",
            ),
        ]
        indexes = [
            models.Index(
                fields=["policy", "user", "end_user"],
                condition=Q(state=PreferenceState.ACTIVE),
                name="preference_active",
            ),
            models.Index(fields=["tenant", "-created_at"], name="preference_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


class Evidence(TenantModel):
    """That a turn's judgement or correction said it.

    Goes with its turn: what nothing rests on is told no more.
    """

    preference = models.ForeignKey(Preference, on_delete=models.CASCADE, related_name="evidence")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="+")
    words = models.CharField(
        max_length=LONGEST, blank=True, help_text="Empty once the preference is deleted."
    )

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(fields=["preference", "turn"], name="evidence_once_per_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.preference_id} by {self.turn_id}"


class MemorySetting(TenantModel):
    """How a policy uses memory; without a row the platform's settings decide."""

    policy = models.OneToOneField(Policy, on_delete=models.CASCADE, related_name="memory_setting")
    in_prompt = models.BooleanField(default=True, help_text="Tell the model what people asked for.")
    budget_tokens = models.PositiveIntegerField(
        null=True,
        validators=[MaxValueValidator(MOST_BUDGET_TOKENS)],
        help_text="For entries in a prompt; empty: the platform's.",
    )
    shadow = models.BooleanField(
        default=True, help_text="Let the weights take preferences over in quiet minutes."
    )
    shadow_tokens_per_day = models.PositiveIntegerField(
        null=True,
        validators=[MaxValueValidator(MOST_SHADOW_TOKENS)],
        help_text="Tokens that shadow rollouts may write in 24 hours; empty: the platform's.",
    )
    shadow_from_hour = models.PositiveSmallIntegerField(
        null=True,
        validators=[MaxValueValidator(LAST_HOUR)],
        help_text="Shadow rollouts begin at this hour, UTC.",
    )
    shadow_until_hour = models.PositiveSmallIntegerField(
        null=True,
        validators=[MaxValueValidator(LAST_HOUR)],
        help_text="… and end at this one; both or neither.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(budget_tokens__isnull=True) | Q(budget_tokens__lte=MOST_BUDGET_TOKENS),
                name="memory_budget_bounded",
            ),
            models.CheckConstraint(
                condition=Q(shadow_from_hour__isnull=True, shadow_until_hour__isnull=True)
                | Q(
                    # a comparison with null is not false, and would let one hour alone pass
                    Q(shadow_from_hour__isnull=False, shadow_until_hour__isnull=False),
                    ~Q(shadow_from_hour=F("shadow_until_hour")),
                    shadow_from_hour__lte=LAST_HOUR,
                    shadow_until_hour__lte=LAST_HOUR,
                ),
                name="memory_shadow_hours_known",
            ),
            models.CheckConstraint(
                condition=Q(shadow_tokens_per_day__isnull=True)
                | Q(shadow_tokens_per_day__lte=MOST_SHADOW_TOKENS),
                name="memory_shadow_tokens_bounded",
            ),
        ]

    def __str__(self) -> str:
        return f"memory of {self.policy_id}"


class LessonState(models.TextChoices):
    """The life of a lesson."""

    TEACHING = "teaching"
    PLATEAU = "plateau"  # several versions in a row were no better: the best so far stays
    HELD = "held"  # the weights do without being told, and no version is better
    ENDED = "ended"  # what is wanted has changed


class Lesson(TenantModel):
    """What the weights of a policy are taught in quiet minutes: all that its one person wants at a time."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="lessons")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(EndUser, null=True, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, help_text="SHA-256 of the preferences and their revisions.")
    entries = models.JSONField(
        default=list, help_text="[{id, revision}…]; the words stay with the preferences."
    )
    state = models.CharField(max_length=10, choices=LessonState.choices, default=LessonState.TEACHING)
    reason = models.CharField(max_length=300, blank=True, help_text="Why it is in its state, or waits.")
    best = models.ForeignKey(AdapterVersion, null=True, on_delete=models.SET_NULL, related_name="+")
    best_score = models.FloatField(
        null=True,
        help_text="Mean log-probability of the teacher's replies under the best version, nats a token.",
    )
    without_gain = models.PositiveSmallIntegerField(
        default=0, help_text="Versions in a row that were no better."
    )
    figures = models.JSONField(default=dict, help_text="The yardstick, and what each version measured.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["policy", "key"], name="lesson_once_per_policy"),
            models.UniqueConstraint(
                fields=["policy"],
                condition=Q(state__in=[LessonState.TEACHING, LessonState.PLATEAU, LessonState.HELD]),
                name="one_lesson_at_a_time_per_policy",
            ),
            models.CheckConstraint(condition=Q(state__in=LessonState.values), name="lesson_state_known"),
            models.CheckConstraint(
                condition=~Q(state=LessonState.ENDED) | ~Q(figures__has_key="replies"),
                name="lesson_ended_keeps_no_replies",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="lesson_by_tenant")]

    def __str__(self) -> str:
        return f"lesson of {self.policy_id}: {self.state}"
