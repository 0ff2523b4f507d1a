"""Archives and deletions that a tenant asked for."""

from django.db import models
from django.db.models import Q

from apps.adapters.models import AdapterVersion
from kernel.tenant_models import TenantModel


class ExportState(models.TextChoices):
    """The life of an export."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"  # its file can be fetched
    FAILED = "failed"
    EXPIRED = "expired"  # its file is gone


OPEN_EXPORT_STATES = (ExportState.QUEUED, ExportState.RUNNING)


class Export(TenantModel):
    """One archive of what a tenant has, written under a lease with a fencing token that the end checks."""

    actor = models.CharField(
        max_length=200, help_text="Who asked: user:<id>, key:<public id> or system:<part>."
    )
    state = models.CharField(max_length=10, choices=ExportState.choices, default=ExportState.QUEUED)
    part = models.CharField(
        max_length=60, blank=True, help_text="The file of the archive that is being written."
    )
    rows_done = models.PositiveBigIntegerField(default=0)
    rows_total = models.PositiveBigIntegerField(default=0, help_text="Counted in the snapshot; 0: not yet.")
    snapshot_at = models.DateTimeField(null=True, help_text="The moment that every row in it is of.")
    attempts = models.PositiveSmallIntegerField(default=0)
    fence = models.PositiveIntegerField(
        default=0, help_text="Grows with every claim; an old holder cannot finish."
    )
    lease_until = models.DateTimeField(null=True)
    available_at = models.DateTimeField(help_text="Nobody takes it before then.")
    size = models.PositiveBigIntegerField(null=True, help_text="Bytes of the archive.")
    sha256 = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=300, blank=True, help_text="Why it failed, or waits again.")
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="Its file is deleted then.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"],
                condition=Q(state__in=OPEN_EXPORT_STATES),
                name="one_open_export_per_tenant",
            ),
            models.CheckConstraint(condition=Q(state__in=ExportState.values), name="export_state_known"),
            models.CheckConstraint(
                condition=~Q(state=ExportState.READY)
                | Q(size__isnull=False, expires_at__isnull=False, finished_at__isnull=False) & ~Q(sha256=""),
                name="export_ready_has_a_file",
            ),
            models.CheckConstraint(
                condition=~Q(state=ExportState.FAILED) | ~Q(reason=""), name="export_failed_says_why"
            ),
            models.CheckConstraint(
                condition=~Q(state=ExportState.RUNNING) | Q(lease_until__isnull=False),
                name="export_running_has_a_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="export_by_tenant"),
            models.Index(
                fields=["available_at"], condition=Q(state__in=OPEN_EXPORT_STATES), name="export_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


class Subject(models.TextChoices):
    """What is to be deleted."""

    SESSION = "session"
    END_USER = "end_user"
    MEMBER = "member"
    EVERYTHING = "everything"
    AGED = "aged"  # sessions of a policy in which nothing was said for longer than it keeps them


class ErasureState(models.TextChoices):
    """The life of a deletion. It never gives up: what stops it is told in `reason`, and it goes on."""

    OPEN = "open"
    DONE = "done"


class Erasure(TenantModel):
    """One deletion: what was asked for, how far it is, and what it did.

    It holds no word of what it deleted.
    """

    actor = models.CharField(
        max_length=200, help_text="Who asked: user:<id>, key:<public id> or system:<part>."
    )
    subject = models.CharField(max_length=10, choices=Subject.choices)
    subject_id = models.UUIDField(
        null=True,
        help_text="The session, end user, member or (aged) policy; empty: everything of the tenant.",
    )
    older_than_days = models.PositiveSmallIntegerField(
        null=True, help_text="Of what is aged: days without a turn, before it was asked for."
    )
    state = models.CharField(max_length=10, choices=ErasureState.choices, default=ErasureState.OPEN)
    turns_total = models.PositiveBigIntegerField(help_text="Turns there were when it was asked for.")
    deleted = models.JSONField(default=dict, help_text="Rows that are gone, by kind.")
    reason = models.CharField(max_length=300, blank=True, help_text="What it waits for, while it is open.")
    moved_at = models.DateTimeField(help_text="When it last got further, or looked whether it can.")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "subject_id"],
                condition=Q(state=ErasureState.OPEN),
                nulls_distinct=False,
                name="one_open_erasure_per_subject",
            ),
            models.CheckConstraint(condition=Q(state__in=ErasureState.values), name="erasure_state_known"),
            models.CheckConstraint(
                condition=Q(subject=Subject.EVERYTHING, subject_id__isnull=True)
                | (
                    Q(subject__in=[Subject.SESSION, Subject.END_USER, Subject.MEMBER, Subject.AGED])
                    & Q(subject_id__isnull=False)
                ),
                name="erasure_of_something",
            ),
            models.CheckConstraint(
                condition=Q(subject=Subject.AGED, older_than_days__isnull=False, older_than_days__gte=1)
                | (~Q(subject=Subject.AGED) & Q(older_than_days__isnull=True)),
                name="erasure_aged_by_days",
            ),
            models.CheckConstraint(
                condition=Q(state=ErasureState.OPEN, finished_at__isnull=True)
                | Q(state=ErasureState.DONE, finished_at__isnull=False),
                name="erasure_done_when",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="erasure_by_tenant"),
            models.Index(fields=["moved_at"], condition=Q(state=ErasureState.OPEN), name="erasure_open"),
            models.Index(
                fields=["subject_id", "-created_at"],
                condition=Q(subject=Subject.AGED),
                name="erasure_aged_by_policy",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_subject_display().lower()} {self.subject_id or ''}".strip()


class LearnedFrom(TenantModel):
    """That a version had learned from samples which a deletion took: they are gone, the version is not."""

    erasure = models.ForeignKey(Erasure, on_delete=models.CASCADE, related_name="learned")
    version = models.ForeignKey(AdapterVersion, on_delete=models.CASCADE, related_name="+")
    samples = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["erasure", "version"], name="learned_from_once"),
            models.CheckConstraint(condition=Q(samples__gt=0), name="learned_from_something"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}: {self.samples} samples"
