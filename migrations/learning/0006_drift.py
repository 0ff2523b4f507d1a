"""Readings of the drift gauges, crossings of their bounds, pauses of training."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("learning", "0005_weights_and_wishes"),
    ]

    operations = [
        migrations.CreateModel(
            name="DriftReading",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "gauge",
                    models.CharField(
                        choices=[
                            ("rollout_learner", "rollout ↔ learner"),
                            ("rollout_deploy", "rollout ↔ deploy"),
                            ("learner_deploy", "learner ↔ deploy"),
                        ],
                        max_length=20,
                    ),
                ),
                ("since", models.DateTimeField(help_text="Beginning of the window it looks at.", null=True)),
                ("until", models.DateTimeField(help_text="End of that window, exclusive.", null=True)),
                ("values", models.JSONField(default=dict, help_text="Measures by name; see `drift.bounds`.")),
                ("detail", models.JSONField(default=dict, help_text="Histograms and counts behind them.")),
                (
                    "bounds",
                    models.JSONField(default=dict, help_text="{measure: [limit, action]} as they held then."),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drift_readings",
                        to="adapters.policy",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drift_readings",
                        to="learning.trainingrun",
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
                (
                    "version",
                    models.ForeignKey(
                        help_text="The version that the run made; without one, the live version.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="adapters.adapterversion",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Crossing",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("measure", models.CharField(max_length=40)),
                ("value", models.FloatField()),
                ("bound", models.FloatField()),
                (
                    "action",
                    models.CharField(
                        choices=[("alert", "Alert"), ("pause", "Pause"), ("fall_back", "Fall Back")],
                        max_length=10,
                    ),
                ),
                ("words", models.CharField(max_length=500)),
                ("done", models.CharField(blank=True, max_length=300)),
                ("acted_at", models.DateTimeField(help_text="When what it asks for was done.", null=True)),
                ("cleared_at", models.DateTimeField(null=True)),
                ("cleared_by", models.CharField(blank=True, max_length=200)),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="crossings",
                        to="adapters.policy",
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
                (
                    "version",
                    models.ForeignKey(
                        help_text="To fall back from.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="adapters.adapterversion",
                    ),
                ),
                (
                    "reading",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="crossings",
                        to="learning.driftreading",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TrainingPause",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("reason", models.CharField(max_length=500)),
                ("actor", models.CharField(max_length=200)),
                ("resumed_at", models.DateTimeField(null=True)),
                ("resumed_by", models.CharField(blank=True, max_length=200)),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="training_pauses",
                        to="adapters.policy",
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
        migrations.AddIndex(
            model_name="driftreading",
            index=models.Index(fields=["policy", "gauge", "-created_at"], name="drift_reading_by_policy"),
        ),
        migrations.AddIndex(
            model_name="driftreading",
            index=models.Index(fields=["tenant", "-created_at"], name="drift_reading_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="driftreading",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run__isnull", False)),
                fields=("run", "gauge"),
                name="drift_reading_once_per_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="driftreading",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run__isnull", True)),
                fields=("policy", "gauge", "until"),
                name="drift_reading_once_per_week",
            ),
        ),
        migrations.AddConstraint(
            model_name="driftreading",
            constraint=models.CheckConstraint(
                condition=models.Q(("gauge__in", ["rollout_learner", "rollout_deploy", "learner_deploy"])),
                name="drift_gauge_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="driftreading",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("run__isnull", False),
                    models.Q(("since__isnull", False), ("until__isnull", False)),
                    _connector="OR",
                ),
                name="drift_reading_of_a_run_or_a_week",
            ),
        ),
        migrations.AddIndex(
            model_name="crossing",
            index=models.Index(fields=["tenant", "-created_at"], name="crossing_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="crossing",
            index=models.Index(
                condition=models.Q(("acted_at", None)), fields=["created_at"], name="crossing_to_act"
            ),
        ),
        migrations.AddConstraint(
            model_name="crossing",
            constraint=models.UniqueConstraint(
                condition=models.Q(("cleared_at__isnull", True)),
                fields=("policy", "measure"),
                name="crossing_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="crossing",
            constraint=models.UniqueConstraint(
                fields=("reading", "measure"), name="crossing_once_per_reading"
            ),
        ),
        migrations.AddConstraint(
            model_name="crossing",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__in", ["alert", "pause", "fall_back"])),
                name="crossing_action_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="crossing",
            constraint=models.CheckConstraint(
                condition=models.Q(("words", ""), _negated=True), name="crossing_says_what"
            ),
        ),
        migrations.AddConstraint(
            model_name="crossing",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cleared_at__isnull", True), ("cleared_by", "")),
                    models.Q(("cleared_at__isnull", False), models.Q(("cleared_by", ""), _negated=True)),
                    _connector="OR",
                ),
                name="crossing_cleared_by_somebody",
            ),
        ),
        migrations.AddIndex(
            model_name="trainingpause",
            index=models.Index(fields=["tenant", "-created_at"], name="pause_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="trainingpause",
            constraint=models.UniqueConstraint(
                condition=models.Q(("resumed_at__isnull", True)), fields=("policy",), name="pause_one_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="trainingpause",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="pause_says_why"
            ),
        ),
        migrations.AddConstraint(
            model_name="trainingpause",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("resumed_at__isnull", True), ("resumed_by", "")),
                    models.Q(("resumed_at__isnull", False), models.Q(("resumed_by", ""), _negated=True)),
                    _connector="OR",
                ),
                name="pause_resumed_by_somebody",
            ),
        ),
        *(protect(f"learning_{name}") for name in ("driftreading", "crossing", "trainingpause")),
    ]
