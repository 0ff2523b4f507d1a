"""Archives that tenants asked for."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_invitation"),
    ]

    operations = [
        migrations.CreateModel(
            name="Export",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "actor",
                    models.CharField(
                        help_text="Who asked: user:<id>, key:<public id> or system:<part>.", max_length=200
                    ),
                ),
                (
                    "idempotency_key",
                    models.CharField(help_text="Of the wish for it, if any.", max_length=255, null=True),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                            ("expired", "Expired"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "part",
                    models.CharField(
                        blank=True, help_text="The file of the archive that is being written.", max_length=60
                    ),
                ),
                ("rows_done", models.PositiveBigIntegerField(default=0)),
                (
                    "rows_total",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Counted in the snapshot; 0: not yet."
                    ),
                ),
                (
                    "snapshot_at",
                    models.DateTimeField(help_text="The moment that every row in it is of.", null=True),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "fence",
                    models.PositiveIntegerField(
                        default=0, help_text="Grows with every claim; an old holder cannot finish."
                    ),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                ("available_at", models.DateTimeField(help_text="Nobody takes it before then.")),
                ("size", models.PositiveBigIntegerField(help_text="Bytes of the archive.", null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                (
                    "reason",
                    models.CharField(blank=True, help_text="Why it failed, or waits again.", max_length=300),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(help_text="Its file is deleted then.", null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-created_at"], name="export_by_tenant"),
                    models.Index(
                        condition=models.Q(("state__in", ("queued", "running"))),
                        fields=["available_at"],
                        name="export_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("queued", "running"))),
                        fields=("tenant",),
                        name="one_open_export_per_tenant",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("tenant", "idempotency_key"),
                        name="export_once_per_idempotency_key",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "running", "ready", "failed", "expired"])
                        ),
                        name="export_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ready"), _negated=True),
                            models.Q(
                                ("expires_at__isnull", False),
                                ("finished_at__isnull", False),
                                ("size__isnull", False),
                                models.Q(("sha256", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="export_ready_has_a_file",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "failed"), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="export_failed_says_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "running"), _negated=True),
                            ("lease_until__isnull", False),
                            _connector="OR",
                        ),
                        name="export_running_has_a_lease",
                    ),
                ],
            },
        ),
        protect("governance_export"),
    ]
