"""The ledger: sessions and turns, with the exact tokens that were read and written."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from apps.accounts.models import EndUser
from apps.adapters.models import AdapterVersion, Policy
from apps.keys.models import ApiKey
from kernel.ids import tail
from kernel.tenant_models import TenantModel


class TurnKind(models.TextChoices):
    """Where a turn came from."""

    LIVE = "live"
    ROLLOUT = "rollout"
    SHADOW = "shadow"
    EVALUATION = "evaluation"


class Session(TenantModel):
    """A conversation of one user of one tenant with one policy."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(
        EndUser, null=True, on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="sessions")
    kind = models.CharField(max_length=10, choices=TurnKind.choices, default=TurnKind.LIVE)
    external_id = models.CharField(max_length=200, null=True, help_text="The id the client gave, if any.")
    last_turn_at = models.DateTimeField(null=True)
    idle_at = models.DateTimeField(null=True, help_text="When it was taken to be over.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "policy", "external_id"],
                condition=Q(external_id__isnull=False),
                name="session_external_id_once_per_user_and_policy",
            ),
            models.CheckConstraint(condition=Q(kind__in=TurnKind.values), name="session_kind_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="session_by_tenant"),
            models.Index(fields=["last_turn_at"], condition=Q(idle_at=None), name="session_open"),
            models.Index(F("policy"), Coalesce("last_turn_at", "created_at"), name="session_by_age"),
            models.Index(fields=["end_user", "created_at"], name="session_by_end_user"),
            models.Index(
                fields=["user", "created_at"], condition=Q(end_user__isnull=True), name="session_by_member"
            ),
            models.Index(fields=["policy", "user"], condition=Q(kind=TurnKind.SHADOW), name="session_shadow"),
        ]

    def __str__(self) -> str:
        return f"session {tail(self.id)}"


class TurnState(models.TextChoices):
    """The life of a turn: `pending` while the engine writes, then one of the rest, for good.

    Only one that is `presumed_lost_at` may still end in another way: see `Turn.OPEN`.
    """

    PENDING = "pending"
    COMPLETE = "complete"
    ABORTED = "aborted"
    FAILED = "failed"


class TurnHolder(models.Model):
    """A process that answers turns.

    One that is not seen for some seconds is gone, and its pending turns with it.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.id)


class PromptSource(models.TextChoices):
    """How the prompt's tokens came about."""

    FIRST = "first"  # no turn before it
    EXTENDED = "extended"  # the stored ids of the turn before, plus the ids of what was added
    RENDERED = "rendered"  # the template, anew: `prompt_reason` says why


class Turn(TenantModel):
    """One request and its reply. Turns of a session form a tree by `parent`.

    `output_ids`, `output_logprobs` come from the engine as they are; nothing is ever tokenised again.
    """

    # found by `turn_by_session`, which begins with it
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns", db_index=False)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="turns")
    # found by `turn_by_version`, which begins with it
    version = models.ForeignKey(
        AdapterVersion, null=True, on_delete=models.PROTECT, related_name="turns", db_index=False
    )
    kind = models.CharField(max_length=10, choices=TurnKind.choices, default=TurnKind.LIVE)
    side = models.BooleanField(default=False, help_text="Served and stored, never trained on.")
    state = models.CharField(max_length=10, choices=TurnState.choices, default=TurnState.PENDING)

    # what was asked
    messages = models.JSONField(help_text="The whole request's messages, canonical.")
    tools = models.JSONField(null=True)
    sampling = models.JSONField(
        default=dict, help_text="temperature, top_p, top_k, penalties, seed, max_tokens …"
    )
    template_kwargs = models.JSONField(default=dict)
    prompt_ids = ArrayField(models.IntegerField(), default=list)
    prompt_source = models.CharField(max_length=10, choices=PromptSource.choices, default=PromptSource.FIRST)
    prompt_reason = models.CharField(max_length=200, blank=True)
    memory = models.JSONField(
        null=True,
        help_text="What the prompt told of the person beside the client's own messages: its text and its entries.",
    )
    request_hash = models.CharField(max_length=64, help_text="Of the canonical messages, chained.")
    idempotency_key = models.CharField(max_length=255, null=True)
    body_sha256 = models.CharField(max_length=64, help_text="Of the request body: what a retry must repeat.")

    # what was answered
    reply = models.JSONField(null=True, help_text="The assistant's message as the client got it.")
    reply_hash = models.CharField(
        max_length=64,
        blank=True,
        help_text="The chain after the reply: what a request that continues starts with.",
    )
    output_ids = ArrayField(models.IntegerField(), default=list)
    output_logprobs = ArrayField(
        models.FloatField(), default=list, help_text="At the sampled temperature, nats."
    )
    spans = models.JSONField(
        default=list, help_text="[[first token, served name]…]: which version wrote what."
    )
    finish_reason = models.CharField(max_length=20, blank=True)
    usage = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True)
    engine_id = models.UUIDField(null=True)
    holder_id = models.UUIDField(
        null=True, help_text="The process that admitted it; the database takes it from the connection."
    )
    first_token_ms = models.FloatField(
        null=True,
        help_text="From the request to the first token; null where none came, and where the reply was not streamed and"
        " the engine does not say.",
    )
    latency_ms = models.FloatField(null=True)
    completed_at = models.DateTimeField(null=True)
    presumed_lost_at = models.DateTimeField(
        null=True,
        help_text="When it was taken to have failed because its process was silent; its own ending still counts.",
    )

    # what happened next
    next_state = models.JSONField(
        null=True, help_text="Every message that the next request added after the reply."
    )
    next_state_at = models.DateTimeField(null=True)
    reply_edited = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the client changed the reply before it went on; what came next is about that text.",
    )
    next_turn = models.OneToOneField(
        "self", null=True, on_delete=models.SET_NULL, related_name="supplies_next_state_of"
    )
    repeats = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.CASCADE,
        related_name="repeated_by",
        db_index=False,
        help_text="The turn whose question a shadow rollout asks once more, which goes with it.",
    )

    OPEN = Q(state=TurnState.PENDING) | Q(presumed_lost_at__isnull=False)
    """Turns of which is not known yet how they end."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "key", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="turn_once_per_idempotency_key",
            ),
            models.CheckConstraint(condition=Q(state__in=TurnState.values), name="turn_state_known"),
            models.CheckConstraint(condition=Q(kind__in=TurnKind.values), name="turn_kind_known"),
            models.CheckConstraint(
                condition=~Q(state=TurnState.COMPLETE) | Q(completed_at__isnull=False, reply__isnull=False),
                name="turn_complete_has_reply",
            ),
            models.CheckConstraint(
                condition=Q(presumed_lost_at__isnull=True) | Q(state=TurnState.FAILED),
                name="turn_presumed_lost_has_failed",
            ),
        ]
        indexes = [
            models.Index(fields=["session", "created_at"], name="turn_by_session"),
            models.Index(fields=["version", "kind", "-created_at"], name="turn_by_version"),
            models.Index(fields=["tenant", "-created_at"], name="turn_by_tenant"),
            models.Index(fields=["key", "policy", "reply_hash"], name="turn_by_reply_hash"),
            models.Index(fields=["key", "body_sha256"], name="turn_by_body"),
            models.Index(fields=["created_at"], condition=Q(state=TurnState.PENDING), name="turn_pending"),
            models.Index(
                fields=["created_at"], condition=Q(presumed_lost_at__isnull=False), name="turn_presumed_lost"
            ),
            models.Index(fields=["repeats"], condition=Q(repeats__isnull=False), name="turn_by_repeated"),
        ]

    def __str__(self) -> str:
        return f"turn {tail(self.id)}"

    @property
    def is_open(self) -> bool:
        """Whether it is not known yet how it ends: as `OPEN`."""
        return self.state == TurnState.PENDING or self.presumed_lost_at is not None


class Feedback(TenantModel):
    """What a person said of a turn by hand. Outranks every judge."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="feedback")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    score = models.SmallIntegerField(null=True, help_text="-1, 0 or 1.")
    correction = models.TextField(blank=True)
    idempotency_key = models.CharField(max_length=255, null=True)

    class Meta:
        verbose_name_plural = "feedback"
        constraints = [
            models.CheckConstraint(
                condition=Q(score__isnull=True) | Q(score__in=[-1, 0, 1]), name="feedback_score_known"
            ),
            models.UniqueConstraint(
                fields=["turn", "user", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="feedback_once_per_idempotency_key",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="feedback_by_tenant")]

    def __str__(self) -> str:
        return f"score {self.score} of turn {tail(self.turn_id)}"
