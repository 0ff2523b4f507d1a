"""Rows are called what the pages call them; the database knows nothing of it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("adapters", "0005_policy_names_to_their_end"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="adapterversion",
            options={"verbose_name": "version"},
        ),
    ]
