"""Alerts, where they are to go, and every attempt to bring them there."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from kernel.tenant_models import TenantModel


class Event(models.TextChoices):
    """What a tenant can be told of. The values are the `type` of a webhook."""

    VERSION_LIVE = "version.live", "A policy answers from another version"
    VERSION_REFUSED = "version.refused", "A version did not pass its checks"
    RUN_FAILED = "run.failed", "A training run failed"
    DRIFT_CROSSED = "drift.crossed", "A drift gauge crossed its bound"
    POLICY_PAUSED = "policy.paused", "Training of a policy is paused"
    POLICY_RESUMED = "policy.resumed", "Training of a policy goes on"
    ENDPOINT_DISABLED = "endpoint.disabled", "A webhook endpoint is switched off"
    ENDPOINT_TEST = "endpoint.test", "Somebody tries a webhook endpoint"


TOLD_OF = tuple(event for event in Event if event != Event.ENDPOINT_TEST)
"""What an endpoint may choose; a test goes to the one that is tried, whatever it chose."""


class Severity(models.TextChoices):
    """How much it matters. Mails are sent from `warning` up."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Alert(TenantModel):
    """Something happened, said once.

    Policies, runs and versions are named by id: this room stands below theirs.
    """

    event = models.CharField(max_length=40, choices=Event.choices)
    severity = models.CharField(max_length=10, choices=Severity.choices)
    words = models.CharField(max_length=1000, help_text="What happened, for a person.")
    done = models.CharField(max_length=500, blank=True, help_text="What the platform did about it.")
    policy_id = models.UUIDField(null=True)
    run_id = models.UUIDField(null=True)
    version_id = models.UUIDField(null=True)
    data = models.JSONField(default=dict, help_text="What webhooks carry beside the words.")
    dedupe_key = models.CharField(max_length=200, help_text="The same happening, found twice, is one row.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "dedupe_key"], name="alert_once"),
            models.CheckConstraint(condition=Q(event__in=Event.values), name="alert_event_known"),
            models.CheckConstraint(condition=Q(severity__in=Severity.values), name="alert_severity_known"),
            models.CheckConstraint(condition=~Q(words=""), name="alert_says_what"),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="alert_by_tenant"),
            models.Index(fields=["policy_id", "-created_at"], name="alert_by_policy"),
        ]

    def __str__(self) -> str:
        return self.words[:80]


class WebhookEndpoint(TenantModel):
    """An address of a tenant that is told of chosen events. The secret signs, so it is sealed, not hashed."""

    url = models.CharField(max_length=2000)
    events = ArrayField(models.CharField(max_length=40))
    secret = models.TextField(help_text="Sealed (kernel.sealing).")
    previous_secret = models.TextField(
        null=True, help_text="Sealed; signs beside the new one during a rotation."
    )
    previous_until = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=300, blank=True)
    failing_since = models.DateTimeField(null=True, help_text="First failure since the last success.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(previous_secret__isnull=True, previous_until__isnull=True)
                | Q(previous_secret__isnull=False, previous_until__isnull=False),
                name="endpoint_previous_secret_ends",
            ),
            models.CheckConstraint(
                condition=Q(enabled=True, disabled_reason="") | (Q(enabled=False) & ~Q(disabled_reason="")),
                name="endpoint_disabled_says_why",
            ),
            models.CheckConstraint(condition=Q(events__len__gte=1), name="endpoint_has_events"),
        ]

    def __str__(self) -> str:
        return self.url.partition("://")[2].partition("/")[0][:80]


class DeliveryState(models.TextChoices):
    """The life of a delivery; `dead` ones can be replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class Delivery(TenantModel):
    """One alert on its way to one endpoint or one person. It may arrive twice, under the same id."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(
        WebhookEndpoint, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    recipient = models.EmailField(blank=True)
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(
        default=0, help_text="Claims so far; an older holder's result counts for nothing."
    )
    retries = models.PositiveIntegerField(default=0, help_text="Failures since it was made or replayed.")
    due_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, blank=True, help_text="Why the last attempt failed.")

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "endpoint"],
                condition=Q(endpoint__isnull=False),
                name="delivery_once_per_endpoint",
            ),
            models.UniqueConstraint(
                fields=["alert", "recipient"], condition=~Q(recipient=""), name="delivery_once_per_recipient"
            ),
            models.CheckConstraint(
                condition=Q(endpoint__isnull=False, recipient="")
                | (Q(endpoint__isnull=True) & ~Q(recipient="")),
                name="delivery_goes_to_one",
            ),
            models.CheckConstraint(condition=Q(state__in=DeliveryState.values), name="delivery_state_known"),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.DELIVERED, delivered_at__isnull=False)
                | (~Q(state=DeliveryState.DELIVERED) & Q(delivered_at__isnull=True)),
                name="delivery_delivered_when",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state=DeliveryState.PENDING), name="delivery_due"),
            models.Index(fields=["tenant", "-created_at"], name="delivery_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


class Attempt(TenantModel):
    """One try of a delivery and what came back."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    number = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status, where there was an answer.")
    answer = models.CharField(max_length=500, blank=True, help_text="The beginning of what was answered.")
    error = models.CharField(max_length=300, blank=True)
    took_ms = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="attempt_once")]

    def __str__(self) -> str:
        return f"#{self.number}: {self.status or self.error}"
