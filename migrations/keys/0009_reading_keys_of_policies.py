"""A key that reads under /api may be limited to policies; one that manages may not."""

from django.db import migrations, models

# the version before shows all of the tenant to whoever reads
NO_MORE_READING = "UPDATE keys_apikey SET scopes = array_remove(scopes, 'read') WHERE some_policies"


class Migration(migrations.Migration):
    dependencies = [("keys", "0008_called_what_people_call_them")]

    operations = [
        migrations.RemoveConstraint(model_name="apikey", name="key_of_some_policies_only_talks"),
        migrations.RunSQL(sql=migrations.RunSQL.noop, reverse_sql=NO_MORE_READING),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("some_policies", False),
                    models.Q(("scopes__contains", ["manage"]), _negated=True),
                    _connector="OR",
                ),
                name="key_of_some_policies_does_not_manage",
            ),
        ),
    ]
