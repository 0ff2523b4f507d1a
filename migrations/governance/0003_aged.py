"""Deletions by age, and wishes for a deletion that name themselves by a key."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        ("governance", "0002_erasure"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="erasure",
            name="erasure_of_something",
        ),
        migrations.AddField(
            model_name="erasure",
            name="idempotency_key",
            field=models.CharField(help_text="Of the wish for it, if any.", max_length=255, null=True),
        ),
        migrations.AddField(
            model_name="erasure",
            name="older_than_days",
            field=models.PositiveSmallIntegerField(
                help_text="Of what is aged: days without a turn, before it was asked for.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="erasure",
            name="subject",
            field=models.CharField(
                choices=[
                    ("session", "Session"),
                    ("end_user", "End User"),
                    ("member", "Member"),
                    ("everything", "Everything"),
                    ("aged", "Aged"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="erasure",
            name="subject_id",
            field=models.UUIDField(
                help_text="The session, end user, member or (aged) policy; empty: everything of the tenant.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(
                condition=models.Q(("subject", "aged")),
                fields=["subject_id", "-created_at"],
                name="erasure_aged_by_policy",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("subject", "everything"), ("subject_id__isnull", True)),
                    models.Q(
                        ("subject__in", ["session", "end_user", "member", "aged"]),
                        ("subject_id__isnull", False),
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
                    models.Q(
                        ("older_than_days__gte", 1), ("older_than_days__isnull", False), ("subject", "aged")
                    ),
                    models.Q(models.Q(("subject", "aged"), _negated=True), ("older_than_days__isnull", True)),
                    _connector="OR",
                ),
                name="erasure_aged_by_days",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key__isnull", False)),
                fields=("tenant", "idempotency_key"),
                name="erasure_once_per_idempotency_key",
            ),
        ),
    ]
