import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("adapters", "0004_lists_in_order_of_time"),
    ]

    operations = [
        migrations.AlterField(
            model_name="policy",
            name="name",
            field=models.CharField(
                max_length=60,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[a-z][a-z0-9._-]*\\Z", "Lower-case letters, digits, dots, hyphens."
                    )
                ],
            ),
        ),
    ]
