"""Rows are called what the pages call them; the database knows nothing of it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("engines", "0003_recycling_and_orders"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="desiredadapter",
            options={"verbose_name": "wanted adapter"},
        ),
    ]
