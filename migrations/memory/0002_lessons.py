"""What weights are taught in quiet minutes, and when."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("memory", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Lesson",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "key",
                    models.CharField(
                        help_text="SHA-256 of the preferences and their revisions.", max_length=64
                    ),
                ),
                (
                    "entries",
                    models.JSONField(
                        default=list, help_text="[{id, revision}…]; the words stay with the preferences."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("teaching", "Teaching"),
                            ("plateau", "Plateau"),
                            ("held", "Held"),
                            ("ended", "Ended"),
                        ],
                        default="teaching",
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True, help_text="Why it is in its state, or waits.", max_length=300
                    ),
                ),
                (
                    "best_score",
                    models.FloatField(
                        help_text="Mean log-probability of the teacher's replies under the best version, nats a token.",
                        null=True,
                    ),
                ),
                (
                    "without_gain",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Versions in a row that were no better."
                    ),
                ),
                (
                    "figures",
                    models.JSONField(
                        default=dict, help_text="The yardstick, and what each version measured."
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.AddField(
            model_name="memorysetting",
            name="shadow_from_hour",
            field=models.PositiveSmallIntegerField(
                help_text="Shadow rollouts begin at this hour, UTC.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(23)],
            ),
        ),
        migrations.AddField(
            model_name="memorysetting",
            name="shadow_until_hour",
            field=models.PositiveSmallIntegerField(
                help_text="… and end at this one; both or neither.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(23)],
            ),
        ),
        migrations.AddConstraint(
            model_name="memorysetting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("shadow_from_hour__isnull", True), ("shadow_until_hour__isnull", True)),
                    models.Q(("shadow_from_hour__lte", 23), ("shadow_until_hour__lte", 23)),
                    _connector="OR",
                ),
                name="memory_shadow_hours_known",
            ),
        ),
        migrations.AddField(
            model_name="lesson",
            name="best",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="adapters.adapterversion",
            ),
        ),
        migrations.AddField(
            model_name="lesson",
            name="end_user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.enduser",
            ),
        ),
        migrations.AddField(
            model_name="lesson",
            name="policy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="lessons", to="adapters.policy"
            ),
        ),
        migrations.AddField(
            model_name="lesson",
            name="tenant",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.tenant",
            ),
        ),
        migrations.AddField(
            model_name="lesson",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddIndex(
            model_name="lesson",
            index=models.Index(fields=["tenant", "-created_at"], name="lesson_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="lesson",
            constraint=models.UniqueConstraint(fields=("policy", "key"), name="lesson_once_per_policy"),
        ),
        migrations.AddConstraint(
            model_name="lesson",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["teaching", "plateau", "held"])),
                fields=("policy",),
                name="one_lesson_at_a_time_per_policy",
            ),
        ),
        migrations.AddConstraint(
            model_name="lesson",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["teaching", "plateau", "held", "ended"])),
                name="lesson_state_known",
            ),
        ),
        protect("memory_lesson"),
    ]
