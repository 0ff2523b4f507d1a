"""Deletions, and the versions that had learned from what they took."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_invitation"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("governance", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Erasure",
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
                    "subject",
                    models.CharField(
                        choices=[
                            ("session", "Session"),
                            ("end_user", "End User"),
                            ("member", "Member"),
                            ("everything", "Everything"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "subject_id",
                    models.UUIDField(
                        help_text="The session, end user or member; empty: everything of the tenant.",
                        null=True,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("done", "Done")], default="open", max_length=10
                    ),
                ),
                (
                    "turns_total",
                    models.PositiveBigIntegerField(help_text="Turns there were when it was asked for."),
                ),
                ("deleted", models.JSONField(default=dict, help_text="Rows that are gone, by kind.")),
                (
                    "reason",
                    models.CharField(
                        blank=True, help_text="What it waits for, while it is open.", max_length=300
                    ),
                ),
                (
                    "moved_at",
                    models.DateTimeField(help_text="When it last got further, or looked whether it can."),
                ),
                ("finished_at", models.DateTimeField(null=True)),
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
        ),
        migrations.CreateModel(
            name="LearnedFrom",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("samples", models.PositiveIntegerField()),
                (
                    "erasure",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="learned",
                        to="governance.erasure",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="adapters.adapterversion",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(fields=["tenant", "-created_at"], name="erasure_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(
                condition=models.Q(("state", "open")), fields=["moved_at"], name="erasure_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "open")),
                fields=("tenant", "subject", "subject_id"),
                name="one_open_erasure_per_subject",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["open", "done"])), name="erasure_state_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("subject", "everything"), ("subject_id__isnull", True)),
                    models.Q(
                        ("subject__in", ["session", "end_user", "member"]), ("subject_id__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="erasure_of_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at__isnull", True), ("state", "open")),
                    models.Q(("finished_at__isnull", False), ("state", "done")),
                    _connector="OR",
                ),
                name="erasure_done_when",
            ),
        ),
        migrations.AddConstraint(
            model_name="learnedfrom",
            constraint=models.UniqueConstraint(fields=("erasure", "version"), name="learned_from_once"),
        ),
        migrations.AddConstraint(
            model_name="learnedfrom",
            constraint=models.CheckConstraint(
                condition=models.Q(("samples__gt", 0)), name="learned_from_something"
            ),
        ),
        protect("governance_erasure"),
        protect("governance_learnedfrom"),
    ]
