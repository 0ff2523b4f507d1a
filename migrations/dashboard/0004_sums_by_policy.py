"""What turns sum up to is kept by policy, too. What was kept before is of no policy: it is thrown away, and made anew."""

from django.db import migrations, models

AFRESH = "DELETE FROM dashboard_turnrollup;"
OF_NO_POLICY = "DELETE FROM dashboard_turnrollup WHERE of_policy IS NOT NULL;"
# Whoever writes a turn holds its table and then looks for its sum; here it is the other way round. So the turns' table comes
# first, and who cannot have it soon gives up: `migrate` again, when less goes on.
TURNS_FIRST = """
SET LOCAL lock_timeout = '10s';
LOCK TABLE conversations_turn IN ACCESS EXCLUSIVE MODE;
"""
# a turn that goes to another policy is one less of the first
OF_A_POLICY = """
DROP TRIGGER turn_changed_in_sums ON conversations_turn;
CREATE TRIGGER turn_changed_in_sums AFTER UPDATE ON conversations_turn
    FOR EACH ROW WHEN (
        (OLD.tenant_id, OLD.created_at, OLD.policy_id, OLD.kind, OLD.state, OLD.usage, OLD.first_token_ms, OLD.latency_ms)
        IS DISTINCT FROM
        (NEW.tenant_id, NEW.created_at, NEW.policy_id, NEW.kind, NEW.state, NEW.usage, NEW.first_token_ms, NEW.latency_ms))
    EXECUTE FUNCTION attune_turn_changed();
"""
OF_ALL = """
DROP TRIGGER turn_changed_in_sums ON conversations_turn;
CREATE TRIGGER turn_changed_in_sums AFTER UPDATE ON conversations_turn
    FOR EACH ROW WHEN (
        (OLD.tenant_id, OLD.created_at, OLD.kind, OLD.state, OLD.usage, OLD.first_token_ms, OLD.latency_ms)
        IS DISTINCT FROM
        (NEW.tenant_id, NEW.created_at, NEW.kind, NEW.state, NEW.usage, NEW.first_token_ms, NEW.latency_ms))
    EXECUTE FUNCTION attune_turn_changed();
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0003_counts_by_bucket")]

    operations = [
        migrations.RunSQL(sql=TURNS_FIRST, reverse_sql=migrations.RunSQL.noop),
        migrations.RunSQL(sql=AFRESH, reverse_sql=migrations.RunSQL.noop),
        migrations.AddField(
            model_name="turnrollup",
            name="of_policy",
            field=models.UUIDField(
                default=None, help_text="Whose turns these are; None: all, of any policy.", null=True
            ),
        ),
        migrations.RemoveConstraint(model_name="turnrollup", name="rollup_once_per_stretch"),
        migrations.AddConstraint(
            model_name="turnrollup",
            constraint=models.UniqueConstraint(
                fields=["tenant", "begins_at", "minutes", "of_policy"],
                name="rollup_once_per_stretch",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="turnrollup",
            index=models.Index(
                condition=models.Q(("of_policy", None)),
                fields=["tenant", "minutes", "begins_at"],
                name="rollup_of_all_turns",
            ),
        ),
        migrations.RunSQL(sql=OF_A_POLICY, reverse_sql=OF_ALL),
        migrations.RunSQL(sql=migrations.RunSQL.noop, reverse_sql=OF_NO_POLICY),
        migrations.RunSQL(sql=migrations.RunSQL.noop, reverse_sql=TURNS_FIRST),
    ]
