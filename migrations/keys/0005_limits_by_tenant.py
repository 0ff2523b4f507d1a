"""What a tenant asks of itself stands beside what an operator set. What there is counts as the operator's."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("keys", "0004_key_policies")]

    operations = [
        migrations.AddField(
            model_name="limit",
            name="by_tenant",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Of all keys together: set by the tenant itself, beside what an operator set.",
            ),
        ),
        migrations.RemoveConstraint(model_name="limit", name="limit_once_per_tenant"),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key__isnull", True)),
                fields=("tenant", "by_tenant"),
                name="limit_once_per_tenant_and_side",
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(("by_tenant", False), ("key__isnull", True), _connector="OR"),
                name="limit_by_tenant_is_of_all_keys",
            ),
        ),
        # the version before has one row of a tenant: the operator's
        migrations.RunSQL(sql=migrations.RunSQL.noop, reverse_sql="DELETE FROM keys_limit WHERE by_tenant"),
    ]
