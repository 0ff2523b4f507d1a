"""Postgres lets one hour alone, and the same hour twice, no longer pass; tokens of a day are bounded."""

import django.core.validators
from django.db import migrations, models

MENDED = """
    -- one hour alone was taken for any hour, the same hour twice for none
    UPDATE memory_memorysetting SET shadow_from_hour = NULL, shadow_until_hour = NULL
        WHERE (shadow_from_hour IS NULL) <> (shadow_until_hour IS NULL);
    UPDATE memory_memorysetting SET shadow = false, shadow_from_hour = NULL, shadow_until_hour = NULL
        WHERE shadow_from_hour = shadow_until_hour;
    UPDATE memory_memorysetting SET shadow_tokens_per_day = 2000000000 WHERE shadow_tokens_per_day > 2000000000;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_held_since")]

    operations = [
        migrations.RemoveConstraint(model_name="memorysetting", name="memory_shadow_hours_known"),
        migrations.RunSQL(sql=MENDED, reverse_sql=migrations.RunSQL.noop),
        # what is pending for the rows that were just changed stands in the way of the constraints
        migrations.RunSQL(sql="SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="memorysetting",
            name="shadow_tokens_per_day",
            field=models.PositiveIntegerField(
                help_text="Tokens that shadow rollouts may write in 24 hours; empty: the platform's.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(2_000_000_000)],
            ),
        ),
        migrations.AddConstraint(
            model_name="memorysetting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("shadow_from_hour__isnull", True), ("shadow_until_hour__isnull", True)),
                    models.Q(
                        models.Q(("shadow_from_hour__isnull", False), ("shadow_until_hour__isnull", False)),
                        models.Q(("shadow_from_hour", models.F("shadow_until_hour")), _negated=True),
                        ("shadow_from_hour__lte", 23),
                        ("shadow_until_hour__lte", 23),
                    ),
                    _connector="OR",
                ),
                name="memory_shadow_hours_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="memorysetting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("shadow_tokens_per_day__isnull", True),
                    ("shadow_tokens_per_day__lte", 2_000_000_000),
                    _connector="OR",
                ),
                name="memory_shadow_tokens_bounded",
            ),
        ),
    ]
