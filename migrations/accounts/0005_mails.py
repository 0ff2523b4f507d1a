"""Mails to people, until they are brought."""

from django.db import migrations, models

import kernel.ids
from kernel.roles import SYSTEM_ROLE

# a mail belongs to no tenant: in a tenant's scope there is none
SYSTEM_ONLY = f"""
ALTER TABLE accounts_mail ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON accounts_mail TO {SYSTEM_ROLE} USING (true) WITH CHECK (true);
"""
SYSTEM_ONLY_BEFORE = """
DROP POLICY all_rows ON accounts_mail;
ALTER TABLE accounts_mail DISABLE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_paused_tenants"),
    ]

    operations = [
        migrations.CreateModel(
            name="Mail",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("kind", models.CharField(help_text="What it is about, in a word.", max_length=100)),
                ("recipient", models.EmailField(max_length=254)),
                (
                    "sealed",
                    models.TextField(blank=True, help_text="Subject and text, sealed (kernel.sealing)."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("sent", "Sent"), ("dead", "Dead")],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        default=0, help_text="Claims so far; an older holder's result counts for nothing."
                    ),
                ),
                ("due_at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True, help_text="Why the last attempt came to nothing.", max_length=300
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "pending")), fields=["due_at"], name="mail_due")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["pending", "sent", "dead"])),
                        name="mail_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "pending"), models.Q(("sealed", ""), _negated=True)),
                            models.Q(
                                models.Q(("state", "pending"), _negated=True),
                                ("claimed_until__isnull", True),
                                ("sealed", ""),
                            ),
                            _connector="OR",
                        ),
                        name="mail_keeps_its_words_while_pending",
                    ),
                ],
            },
        ),
        migrations.RunSQL(sql=SYSTEM_ONLY, reverse_sql=SYSTEM_ONLY_BEFORE),
    ]
