"""Rows are called what the pages call them; the database knows nothing of it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("learning", "0011_one_place_for_idempotency_keys"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="trainingrun",
            options={"verbose_name": "run"},
        ),
    ]
