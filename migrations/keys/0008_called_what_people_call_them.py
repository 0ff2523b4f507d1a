"""Rows are called what the pages call them; the database knows nothing of it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("keys", "0007_rotated_once"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apikey",
            options={"verbose_name": "key"},
        ),
    ]
