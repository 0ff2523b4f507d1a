from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("engines", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="desiredadapter",
            name="rank",
            field=models.PositiveIntegerField(default=16),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="desiredadapter",
            name="probe",
            field=models.JSONField(
                default=list,
                help_text="[{ids, logprobs, base_logprobs}…]: what the trainer measured; nats, one fewer than ids.",
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="desiredadapter",
            name="unwanted_at",
            field=models.DateTimeField(help_text="Since when no new request asks for it.", null=True),
        ),
        migrations.AddField(
            model_name="loadedadapter",
            name="probed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddConstraint(
            model_name="desiredadapter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("unwanted_at__isnull", True), ("wanted", True)),
                    models.Q(("unwanted_at__isnull", False), ("wanted", False)),
                    _connector="OR",
                ),
                name="adapter_unwanted_since_when",
            ),
        ),
    ]
