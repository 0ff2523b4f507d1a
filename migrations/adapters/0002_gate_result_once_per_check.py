from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("adapters", "0001_initial"),
    ]

    operations = [
        migrations.AddConstraint(
            model_name="gateresult",
            constraint=models.UniqueConstraint(
                fields=("version", "check_name"), name="gate_result_once_per_check"
            ),
        ),
    ]
