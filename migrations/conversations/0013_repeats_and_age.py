"""Sessions are found by the age of their last turn, and a shadow turn names the one whose question it repeats."""

import django.db.models.deletion
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        ("adapters", "0003_configurations"),
        ("conversations", "0012_sessions_before_turns"),
        ("keys", "0004_key_policies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="repeats",
            field=models.ForeignKey(
                db_index=False,
                help_text="The turn whose question a shadow rollout asks once more, which goes with it.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="repeated_by",
                to="conversations.turn",
            ),
        ),
        migrations.AlterField(
            model_name="turn",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="turns",
                to="conversations.session",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                models.F("policy"),
                django.db.models.functions.comparison.Coalesce("last_turn_at", "created_at"),
                name="session_by_age",
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("repeats__isnull", False)), fields=["repeats"], name="turn_by_repeated"
            ),
        ),
    ]
