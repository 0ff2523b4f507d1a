"""A hint says whether it rests on what the user said alone, and may be kept as that person's wish."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0005_open_or_dead_judgements"),
        ("conversations", "0016_paused_tenants"),
    ]

    operations = [
        migrations.AddField(
            model_name="hint",
            name="by_user",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Nothing but what the user said is behind it: it may be kept as that person's wish.",
            ),
        ),
    ]
