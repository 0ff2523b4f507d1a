"""Rows are called what the pages call them; the database knows nothing of it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0007_by_user_of_the_hints_there_are"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="rejudging",
            options={"verbose_name": "re-judging"},
        ),
    ]
