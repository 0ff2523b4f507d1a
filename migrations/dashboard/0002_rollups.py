"""What turns sum up to, and how Postgres throws it away."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect

# A stretch begins where its level has one, and is over when it is summed up.
STRETCHES = """
ALTER TABLE dashboard_turnrollup
    ADD CONSTRAINT rollup_begins_with_its_level CHECK (
        begins_at = date_bin(make_interval(mins => minutes), begins_at, '2020-01-01 00:00+00')),
    ADD CONSTRAINT rollup_is_over CHECK (begins_at + make_interval(mins => minutes) <= created_at);
CREATE TRIGGER rollup_never_changed AFTER UPDATE ON dashboard_turnrollup
    FOR EACH ROW EXECUTE FUNCTION attune_never_changed();
"""
STRETCHES_BEFORE = """
DROP TRIGGER rollup_never_changed ON dashboard_turnrollup;
ALTER TABLE dashboard_turnrollup DROP CONSTRAINT rollup_begins_with_its_level, DROP CONSTRAINT rollup_is_over;
"""

# Half-hours are advisory locks. Who changes a turn shares its half-hour until the commit, together with all others who
# do; who sums up holds each for itself, and only where nobody has it. So there are two cases. Either the change was
# committed before the sums were begun: then they have it. Or it waits until they are committed, sees them, and deletes them.
# That a statement sees what was committed before it began is what READ COMMITTED means; under a stricter level it would
# look away, so that is refused. Different half-hours may share one of the 1,024 locks, which bounds what one transaction that
# changes many takes of Postgres' table of locks.
HALF_HOURS = """
CREATE FUNCTION attune_half_hour(of_tenant uuid, at timestamptz) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT (hashtext(of_tenant::text) # floor(extract(epoch FROM at) / 1800)::int) & 1023
$$;
CREATE FUNCTION attune_hold_half_hours(of_tenant uuid, since timestamptz, minutes int) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'turns are summed up under READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    FOR number IN 0 .. minutes / 30 - 1 LOOP
        IF NOT pg_try_advisory_xact_lock(
            1800, attune_half_hour(of_tenant, since + number * interval '30 minutes')) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;
CREATE FUNCTION attune_forget_sums(of_tenant uuid, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    origin timestamptz := '2020-01-01 00:00+00';
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'turns and rewards are changed under READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(1800, attune_half_hour(of_tenant, at));
    DELETE FROM dashboard_turnrollup r
    WHERE r.tenant_id = of_tenant AND at < r.begins_at + make_interval(mins => r.minutes) AND r.begins_at IN (
        date_bin('30 minutes', at, origin), date_bin('3 hours', at, origin), date_bin('12 hours', at, origin));
END $$;
"""
HALF_HOURS_BEFORE = """
DROP FUNCTION attune_forget_sums(uuid, timestamptz);
DROP FUNCTION attune_hold_half_hours(uuid, timestamptz, int);
DROP FUNCTION attune_half_hour(uuid, timestamptz);
"""

# As the owner: what is kept is thrown away whoever changes a turn, and whatever that one may see.
CHANGES = """
CREATE FUNCTION attune_turn_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM attune_forget_sums(OLD.tenant_id, OLD.created_at);
    END IF;
    IF TG_OP = 'INSERT'
        OR TG_OP = 'UPDATE' AND (OLD.tenant_id, OLD.created_at) IS DISTINCT FROM (NEW.tenant_id, NEW.created_at) THEN
        PERFORM attune_forget_sums(NEW.tenant_id, NEW.created_at);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER turn_added_to_sums AFTER INSERT ON conversations_turn
    FOR EACH ROW EXECUTE FUNCTION attune_turn_changed();
CREATE TRIGGER turn_gone_from_sums AFTER DELETE ON conversations_turn
    FOR EACH ROW EXECUTE FUNCTION attune_turn_changed();
CREATE TRIGGER turn_changed_in_sums AFTER UPDATE ON conversations_turn
    FOR EACH ROW WHEN (
        (OLD.tenant_id, OLD.created_at, OLD.kind, OLD.state, OLD.usage, OLD.first_token_ms, OLD.latency_ms)
        IS DISTINCT FROM
        (NEW.tenant_id, NEW.created_at, NEW.kind, NEW.state, NEW.usage, NEW.first_token_ms, NEW.latency_ms))
    EXECUTE FUNCTION attune_turn_changed();

CREATE FUNCTION attune_reward_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    -- of a turn that is gone already nothing is kept
    PERFORM attune_forget_sums(t.tenant_id, t.created_at) FROM conversations_turn t
    WHERE t.id IN (OLD.turn_id, NEW.turn_id);
    RETURN NULL;
END $$;
CREATE TRIGGER reward_added_to_sums AFTER INSERT ON learning_sample
    FOR EACH ROW WHEN (NEW.reward IS NOT NULL) EXECUTE FUNCTION attune_reward_changed();
CREATE TRIGGER reward_gone_from_sums AFTER DELETE ON learning_sample
    FOR EACH ROW WHEN (OLD.reward IS NOT NULL) EXECUTE FUNCTION attune_reward_changed();
CREATE TRIGGER reward_changed_in_sums AFTER UPDATE ON learning_sample
    FOR EACH ROW WHEN ((OLD.turn_id, OLD.reward) IS DISTINCT FROM (NEW.turn_id, NEW.reward))
    EXECUTE FUNCTION attune_reward_changed();
"""
CHANGES_BEFORE = """
DROP FUNCTION attune_turn_changed() CASCADE;
DROP FUNCTION attune_reward_changed() CASCADE;
"""

GRANTS = """
REVOKE ALL ON FUNCTION attune_half_hour(uuid, timestamptz),
    attune_hold_half_hours(uuid, timestamptz, int), attune_forget_sums(uuid, timestamptz),
    attune_turn_changed(), attune_reward_changed() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION attune_half_hour(uuid, timestamptz),
    attune_hold_half_hours(uuid, timestamptz, int) TO attune_app, attune_system;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_seal_second_factors"),
        ("conversations", "0013_repeats_and_age"),
        ("dashboard", "0001_initial"),
        ("judging", "0003_rubrics_spend_and_windows"),
        ("learning", "0010_runs_in_order_of_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="TurnRollup",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("begins_at", models.DateTimeField()),
                ("minutes", models.PositiveSmallIntegerField(help_text="How long the stretch is.")),
                ("requests", models.PositiveBigIntegerField(help_text="Live turns and those of rollouts.")),
                ("failed", models.PositiveBigIntegerField(help_text="Of the requests.")),
                ("prompt_tokens", models.BigIntegerField()),
                ("reply_tokens", models.BigIntegerField()),
                (
                    "first_token_ms",
                    models.JSONField(help_text="How many durations fell into which bucket of the histogram."),
                ),
                ("latency_ms", models.JSONField(help_text="As of the first token.")),
                (
                    "reward",
                    models.FloatField(help_text="The sum of the rewards of samples, of turns of any kind."),
                ),
                ("rewarded", models.PositiveBigIntegerField(help_text="Samples that have one.")),
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
                "indexes": [models.Index(fields=["begins_at"], name="rollup_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "begins_at", "minutes"), name="rollup_once_per_stretch"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("minutes__in", (30, 180, 720))), name="rollup_level_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("failed__lte", models.F("requests"))),
                        name="rollup_failed_of_requests",
                    ),
                ],
            },
        ),
        protect("dashboard_turnrollup"),
        migrations.RunSQL(sql=STRETCHES, reverse_sql=STRETCHES_BEFORE),
        migrations.RunSQL(sql=HALF_HOURS, reverse_sql=HALF_HOURS_BEFORE),
        migrations.RunSQL(sql=CHANGES, reverse_sql=CHANGES_BEFORE),
        migrations.RunSQL(sql=GRANTS, reverse_sql=migrations.RunSQL.noop),
    ]
