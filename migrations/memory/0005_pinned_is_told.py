"""What is pinned is told: it is never out of the prompt because the weights hold it."""

from django.db import migrations, models

TOLD = """
    UPDATE memory_preference SET state = 'active', held_by_id = NULL, held_since = NULL
        WHERE state = 'learned' AND pinned;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_hours_both_or_neither")]

    operations = [
        migrations.RunSQL(sql=TOLD, reverse_sql=migrations.RunSQL.noop),
        # what is pending for the rows that were just changed stands in the way of the constraint
        migrations.RunSQL(sql="SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="preference",
            name="pinned",
            field=models.BooleanField(
                default=False,
                help_text="Comes first, is told until it is unpinned, and nothing that is overheard replaces it.",
            ),
        ),
        migrations.AlterField(
            model_name="preference",
            name="revision",
            field=models.PositiveIntegerField(
                default=1,
                help_text="Grows with every edit, and where it is asked for again after it was not told.",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(("state", "learned"), _negated=True) | models.Q(("pinned", False)),
                name="preference_pinned_is_told",
            ),
        ),
    ]
