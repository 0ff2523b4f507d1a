"""Rows that every app writes: work to be announced, who did what, and what was asked for under a key."""

from django.conf import settings
from django.db import models

from kernel.ids import uuid7
from kernel.tenant_models import TenantModel


class OutboxMessage(models.Model):
    """A task to be sent once the transaction that wrote it has committed.

    The broker may lose or repeat the message: this row is the record, the message only wakes.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey("accounts.Tenant", null=True, on_delete=models.CASCADE, related_name="+")
    task = models.CharField(max_length=200)
    queue = models.CharField(max_length=40)
    kwargs = models.JSONField(default=dict)
    dedupe_key = models.CharField(max_length=200, null=True, help_text="At most one unsent row per key.")
    created_at = models.DateTimeField(auto_now_add=True)
    available_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dedupe_key"],
                condition=models.Q(sent_at__isnull=True),
                name="outbox_one_unsent_per_key",
            )
        ]
        indexes = [
            models.Index(
                fields=["available_at", "id"], condition=models.Q(sent_at__isnull=True), name="outbox_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task} #{self.pk}"


class AuditEntry(models.Model):
    """Who did what to what, and why. Append-only for every application role."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # an audit row outlives what it speaks of
    tenant = models.ForeignKey(
        "accounts.Tenant", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=200, help_text="user:<id>, key:<public id> or system:<part>")
    action = models.CharField(max_length=100)
    target = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["tenant", "-created_at"], name="audit_by_tenant")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class Wish(TenantModel):
    """A POST under /api that came with an `Idempotency-Key`, and what it made (`kernel.rest.wishes`).

    Neither its body nor its answer is kept: people's words and secrets stand in them.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    idempotency_key = models.CharField(max_length=255)
    request_mac = models.BinaryField(
        max_length=32, help_text="Of its address and body, under the SECRET_KEY."
    )
    made = models.UUIDField(null=True, help_text="What its answer was of.")
    status = models.PositiveSmallIntegerField(null=True, help_text="Of the answer.")
    shows_secret = models.BooleanField(
        default=False, help_text="The answer held a secret, which is shown once."
    )

    class Meta:
        verbose_name_plural = "wishes"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user", "idempotency_key"], name="wish_once"),
            models.CheckConstraint(
                condition=models.Q(made__isnull=True, status__isnull=True)
                | models.Q(made__isnull=False, status__isnull=False),
                name="wish_has_made_what_it_answered",
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="wish_by_age")]

    def __str__(self) -> str:
        return f"wish of {self.user_id}"
