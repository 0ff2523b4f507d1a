from django.db import migrations, models

STATES = ["starting", "ready", "draining", "lost", "recycling"]


class Migration(migrations.Migration):
    dependencies = [
        ("engines", "0002_what_an_adapter_must_answer"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="engine", name="engine_state_known"),
        migrations.AlterField(
            model_name="engine",
            name="state",
            field=models.CharField(
                choices=[
                    ("starting", "Starting"),
                    ("ready", "Ready"),
                    ("draining", "Draining"),
                    ("lost", "Lost"),
                    ("recycling", "Recycling"),
                ],
                default="starting",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="engine",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", STATES)), name="engine_state_known"
            ),
        ),
        migrations.AddField(
            model_name="engine",
            name="ordered",
            field=models.CharField(
                blank=True,
                choices=[("serve", "Serve"), ("drain", "Drain")],
                default="",
                help_text="What an operator said; empty: ENGINE_URLS decides.",
                max_length=10,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="engine",
            name="recycle_at",
            field=models.DateTimeField(help_text="Since when it must be restarted.", null=True),
        ),
        migrations.AddField(
            model_name="engine",
            name="restart_asked_at",
            field=models.DateTimeField(help_text="When its restart was last asked for.", null=True),
        ),
        migrations.AddConstraint(
            model_name="engine",
            constraint=models.CheckConstraint(
                condition=models.Q(("ordered__in", ["", "serve", "drain"])), name="engine_order_known"
            ),
        ),
    ]
