"""Alerts, webhook endpoints, deliveries and their attempts."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("version.live", "A policy answers from another version"),
                            ("version.refused", "A version did not pass its checks"),
                            ("run.failed", "A training run failed"),
                            ("drift.crossed", "A drift gauge crossed its bound"),
                            ("policy.paused", "Training of a policy is paused"),
                            ("policy.resumed", "Training of a policy goes on"),
                            ("endpoint.disabled", "A webhook endpoint is switched off"),
                        ],
                        max_length=40,
                    ),
                ),
                (
                    "severity",
                    models.CharField(
                        choices=[("info", "Info"), ("warning", "Warning"), ("critical", "Critical")],
                        max_length=10,
                    ),
                ),
                ("words", models.CharField(help_text="What happened, for a person.", max_length=1000)),
                (
                    "done",
                    models.CharField(blank=True, help_text="What the platform did about it.", max_length=500),
                ),
                ("policy_id", models.UUIDField(null=True)),
                ("run_id", models.UUIDField(null=True)),
                ("version_id", models.UUIDField(null=True)),
                ("data", models.JSONField(default=dict, help_text="What webhooks carry beside the words.")),
                (
                    "dedupe_key",
                    models.CharField(
                        help_text="The same happening, found twice, is one row.", max_length=200
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("recipient", models.EmailField(blank=True, max_length=254)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("delivered", "Delivered"), ("dead", "Dead")],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        default=0, help_text="Claims so far; an older holder's result counts for nothing."
                    ),
                ),
                (
                    "retries",
                    models.PositiveIntegerField(
                        default=0, help_text="Failures since it was made or replayed."
                    ),
                ),
                ("due_at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
                ("delivered_at", models.DateTimeField(null=True)),
                (
                    "reason",
                    models.CharField(blank=True, help_text="Why the last attempt failed.", max_length=300),
                ),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="alerts.alert",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveIntegerField()),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="HTTP status, where there was an answer.", null=True
                    ),
                ),
                (
                    "answer",
                    models.CharField(
                        blank=True, help_text="The beginning of what was answered.", max_length=500
                    ),
                ),
                ("error", models.CharField(blank=True, max_length=300)),
                ("took_ms", models.FloatField()),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tries",
                        to="alerts.delivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("url", models.CharField(max_length=2000)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), size=None
                    ),
                ),
                ("secret", models.TextField(help_text="Sealed (kernel.sealing).")),
                (
                    "previous_secret",
                    models.TextField(
                        help_text="Sealed; signs beside the new one during a rotation.", null=True
                    ),
                ),
                ("previous_until", models.DateTimeField(null=True)),
                ("enabled", models.BooleanField(default=True)),
                ("disabled_reason", models.CharField(blank=True, max_length=300)),
                (
                    "failing_since",
                    models.DateTimeField(help_text="First failure since the last success.", null=True),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="alerts.webhookendpoint",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["tenant", "-created_at"], name="alert_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["policy_id", "-created_at"], name="alert_by_policy"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.UniqueConstraint(fields=("tenant", "dedupe_key"), name="alert_once"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "event__in",
                        [
                            "version.live",
                            "version.refused",
                            "run.failed",
                            "drift.crossed",
                            "policy.paused",
                            "policy.resumed",
                            "endpoint.disabled",
                        ],
                    )
                ),
                name="alert_event_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                name="alert_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("words", ""), _negated=True), name="alert_says_what"
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(fields=("delivery", "number"), name="attempt_once"),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("previous_secret__isnull", True), ("previous_until__isnull", True)),
                    models.Q(("previous_secret__isnull", False), ("previous_until__isnull", False)),
                    _connector="OR",
                ),
                name="endpoint_previous_secret_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("disabled_reason", ""), ("enabled", True)),
                    models.Q(("enabled", False), models.Q(("disabled_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="endpoint_disabled_says_why",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("events__len__gte", 1)), name="endpoint_has_events"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "pending")), fields=["due_at"], name="delivery_due"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["tenant", "-created_at"], name="delivery_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("endpoint__isnull", False)),
                fields=("alert", "endpoint"),
                name="delivery_once_per_endpoint",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("recipient", ""), _negated=True),
                fields=("alert", "recipient"),
                name="delivery_once_per_recipient",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("endpoint__isnull", False), ("recipient", "")),
                    models.Q(("endpoint__isnull", True), models.Q(("recipient", ""), _negated=True)),
                    _connector="OR",
                ),
                name="delivery_goes_to_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "delivered", "dead"])),
                name="delivery_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("delivered_at__isnull", False), ("state", "delivered")),
                    models.Q(models.Q(("state", "delivered"), _negated=True), ("delivered_at__isnull", True)),
                    _connector="OR",
                ),
                name="delivery_delivered_when",
            ),
        ),
        *(protect(f"alerts_{name}") for name in ("alert", "webhookendpoint", "delivery", "attempt")),
    ]
