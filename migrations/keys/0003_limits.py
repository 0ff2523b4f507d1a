"""Limits of keys and tenants."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("keys", "0002_find_key"),
    ]

    operations = [
        migrations.CreateModel(
            name="Limit",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("requests_per_minute", models.PositiveIntegerField(null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(null=True)),
                ("concurrent", models.PositiveIntegerField(help_text="Requests at once.", null=True)),
                (
                    "key",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limit",
                        to="keys.apikey",
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("key__isnull", True)),
                        fields=("tenant",),
                        name="limit_once_per_tenant",
                    )
                ],
            },
        ),
        protect("keys_limit"),
    ]
