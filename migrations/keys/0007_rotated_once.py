"""A key names what it was rotated into, once."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("keys", "0006_scopes_by_role"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="successor",
            field=models.OneToOneField(
                editable=False,
                help_text="What it was rotated into, once: from then on its end is that of the overlap.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="keys.apikey",
            ),
        ),
    ]
