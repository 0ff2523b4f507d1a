"""The turns of a version are found by kind, newest first."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        ("adapters", "0004_lists_in_order_of_time"),
        ("conversations", "0013_repeats_and_age"),
        ("keys", "0004_key_policies"),
    ]

    operations = [
        migrations.AlterField(
            model_name="turn",
            name="version",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="turns",
                to="adapters.adapterversion",
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(fields=["version", "kind", "-created_at"], name="turn_by_version"),
        ),
    ]
