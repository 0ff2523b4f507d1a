"""A run names the configuration that it was taken under."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("adapters", "0003_configurations"),
        ("learning", "0007_rollout_gate"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="config_number",
            field=models.PositiveIntegerField(
                help_text="The policy's configuration that this was; None until the run was taken.", null=True
            ),
        ),
        migrations.RunSQL(
            sql="""
            ALTER TABLE learning_trainingrun ADD CONSTRAINT run_config_is_its_policys
                FOREIGN KEY (policy_id, config_number) REFERENCES adapters_policyconfig (policy_id, number)
                DEFERRABLE INITIALLY DEFERRED;
            """,
            reverse_sql="ALTER TABLE learning_trainingrun DROP CONSTRAINT run_config_is_its_policys",
        ),
    ]
