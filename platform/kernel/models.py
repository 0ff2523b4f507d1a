"""Rows that every app writes: work to be announced, and who did what."""

from django.db import models

from kernel.ids import uuid7


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
