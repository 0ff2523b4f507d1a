"""A tenant may be paused, with a reason."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="pause_reason",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The tenant reads it.",
                max_length=400,
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="paused_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name="tenant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("pause_reason", ""), ("paused_at__isnull", True)),
                    models.Q(("paused_at__isnull", False), models.Q(("pause_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="tenant_paused_with_a_reason",
            ),
        ),
    ]
