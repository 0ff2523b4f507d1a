"""Saved views of the sessions' list."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=60)),
                ("shared", models.BooleanField(default=False)),
                (
                    "place",
                    models.PositiveSmallIntegerField(
                        help_text="The lowest that was free when it was saved or shared."
                    ),
                ),
                (
                    "filters",
                    models.JSONField(
                        default=dict, help_text="Values of the filter form by field, without the end user."
                    ),
                ),
                (
                    "end_user",
                    models.ForeignKey(
                        help_text="The only one whose sessions it shows; whoever deletes that person deletes this, too.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.enduser",
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
                    "user",
                    models.ForeignKey(
                        help_text="Who made it.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-created_at"], name="view_by_tenant")],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("tenant"),
                        models.F("user"),
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("shared", False)),
                        name="view_name_once_per_member",
                    ),
                    models.UniqueConstraint(
                        models.F("tenant"),
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("shared", True)),
                        name="view_name_once_among_shared",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("shared", False)),
                        fields=("tenant", "user", "place"),
                        name="view_place_once_per_member",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("shared", True)),
                        fields=("tenant", "place"),
                        name="view_place_once_among_shared",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("place__gte", 1), ("place__lte", 20)), name="view_places_are_few"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="view_has_a_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("end_user__isnull", False),
                            models.Q(("filters", {}), _negated=True),
                            _connector="OR",
                        ),
                        name="view_filters_something",
                    ),
                ],
            },
        ),
        protect("dashboard_savedview"),
    ]
