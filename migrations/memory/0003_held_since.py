"""Since when a preference is not told any more."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("memory", "0002_lessons"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="preference",
            name="held_since",
            field=models.DateTimeField(help_text="Since when no prompt is told of it.", null=True),
        ),
        migrations.RunSQL(
            sql="UPDATE memory_preference SET held_since = changed_at WHERE state = 'learned'",
            reverse_sql=migrations.RunSQL.noop,
        ),
        # what is pending for the rows that were just changed stands in the way of the constraint
        migrations.RunSQL(sql="SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("held_since__isnull", False), ("state", "learned")),
                    models.Q(models.Q(("state", "learned"), _negated=True), ("held_since__isnull", True)),
                    _connector="OR",
                ),
                name="preference_learned_since_when",
            ),
        ),
    ]
