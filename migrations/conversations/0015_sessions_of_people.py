"""Sessions of a person are read oldest first, and what repeats a person's questions is found among live ones."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        ("adapters", "0004_lists_in_order_of_time"),
        ("conversations", "0014_turns_by_version"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="session",
            name="end_user",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sessions",
                to="accounts.enduser",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["end_user", "created_at"], name="session_by_end_user"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("end_user__isnull", True)),
                fields=["user", "created_at"],
                name="session_by_member",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("kind", "shadow")), fields=["policy", "user"], name="session_shadow"
            ),
        ),
    ]
