"""Every configuration of a policy is a row, and a policy always names the one that holds."""

import django.db.models.deletion
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect

# Whoever changes `config`, by whatever statement, makes the next row. A service writes that row itself, with who
# changed it, before it moves the policy on to it; a statement that names nobody gets a row of the database's.
NUMBERED = """
CREATE FUNCTION attune_config_row(of_policy uuid, of_tenant uuid, wanted int, own jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO adapters_policyconfig (id, tenant_id, created_at, policy_id, number, overrides, actor)
    VALUES (gen_random_uuid(), of_tenant, clock_timestamp(), of_policy, wanted, own, 'system:database')
    ON CONFLICT (policy_id, number) DO NOTHING;
    IF NOT EXISTS (SELECT FROM adapters_policyconfig c
                   WHERE c.policy_id = of_policy AND c.number = wanted AND c.overrides = own) THEN
        RAISE EXCEPTION 'configuration % of the policy % says otherwise', wanted, of_policy
            USING ERRCODE = 'check_violation';
    END IF;
END $$;
CREATE FUNCTION attune_number_config() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.config_number := 1;
    ELSIF NEW.config IS NOT DISTINCT FROM OLD.config THEN
        NEW.config_number := OLD.config_number;
    ELSE
        NEW.config_number := OLD.config_number + 1;
        PERFORM attune_config_row(NEW.id, NEW.tenant_id, NEW.config_number, NEW.config);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER policy_config_numbered BEFORE INSERT OR UPDATE ON adapters_policy
    FOR EACH ROW EXECUTE FUNCTION attune_number_config();
CREATE FUNCTION attune_first_config() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    PERFORM attune_config_row(NEW.id, NEW.tenant_id, 1, NEW.config);
    RETURN NULL;
END $$;
CREATE TRIGGER policy_config_first AFTER INSERT ON adapters_policy
    FOR EACH ROW EXECUTE FUNCTION attune_first_config();

CREATE FUNCTION attune_config_kept() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'rows of % are never changed: write a new one', TG_TABLE_NAME USING ERRCODE = 'check_violation';
    ELSIF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM adapters_policy p WHERE p.id = OLD.policy_id) THEN
            RAISE EXCEPTION 'a configuration is kept as long as its policy' USING ERRCODE = 'check_violation';
        END IF;
    ELSIF EXISTS (SELECT FROM adapters_policy p WHERE p.id = NEW.policy_id AND p.config_number < NEW.number) THEN
        RAISE EXCEPTION 'a configuration is written for a policy that takes it' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER config_never_changed AFTER UPDATE ON adapters_policyconfig
    FOR EACH ROW EXECUTE FUNCTION attune_config_kept();
CREATE CONSTRAINT TRIGGER config_kept AFTER INSERT OR DELETE ON adapters_policyconfig
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION attune_config_kept();
"""

NUMBERED_BEFORE = """
DROP TRIGGER policy_config_numbered ON adapters_policy;
DROP TRIGGER policy_config_first ON adapters_policy;
DROP TRIGGER config_never_changed ON adapters_policyconfig;
DROP TRIGGER config_kept ON adapters_policyconfig;
DROP FUNCTION attune_number_config();
DROP FUNCTION attune_first_config();
DROP FUNCTION attune_config_kept();
DROP FUNCTION attune_config_row(uuid, uuid, int, jsonb);
"""

# What a policy learns by now is its first configuration; what it learned by before that is on its runs.
THERE_ALREADY = """
INSERT INTO adapters_policyconfig (id, tenant_id, created_at, policy_id, number, overrides, actor)
SELECT gen_random_uuid(), tenant_id, clock_timestamp(), id, 1, config, 'system:migration' FROM adapters_policy;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""

REFERRED_TO = """
ALTER TABLE adapters_policyconfig ADD CONSTRAINT config_of_the_policys_tenant
    FOREIGN KEY (tenant_id, policy_id) REFERENCES adapters_policy (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE adapters_policy ADD CONSTRAINT policy_config_is_there
    FOREIGN KEY (id, config_number) REFERENCES adapters_policyconfig (policy_id, number) DEFERRABLE INITIALLY DEFERRED;
"""
REFERRED_TO_BEFORE = """
ALTER TABLE adapters_policy DROP CONSTRAINT policy_config_is_there;
ALTER TABLE adapters_policyconfig DROP CONSTRAINT config_of_the_policys_tenant;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_invitation"),
        ("adapters", "0002_gate_result_once_per_check"),
    ]

    operations = [
        migrations.CreateModel(
            name="PolicyConfig",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveIntegerField(help_text="From 1, without gaps.")),
                (
                    "overrides",
                    models.JSONField(blank=True, default=dict, help_text="What differs from the platform's."),
                ),
                (
                    "actor",
                    models.CharField(
                        help_text="Who wrote it; `system:database` where a statement named nobody.",
                        max_length=200,
                    ),
                ),
            ],
            options={
                "verbose_name": "configuration",
            },
        ),
        migrations.AddField(
            model_name="policy",
            name="config_number",
            field=models.PositiveIntegerField(
                default=1, editable=False, help_text="The row of `PolicyConfig` that `config` is a copy of."
            ),
        ),
        migrations.AddConstraint(
            model_name="policy",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="policy_of_its_tenant"),
        ),
        migrations.AddField(
            model_name="policyconfig",
            name="policy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="configs", to="adapters.policy"
            ),
        ),
        migrations.AddField(
            model_name="policyconfig",
            name="tenant",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyconfig",
            constraint=models.UniqueConstraint(
                fields=("policy", "number"), name="config_number_once_per_policy"
            ),
        ),
        migrations.AddConstraint(
            model_name="policyconfig",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="config_numbers_start_at_1"
            ),
        ),
        protect("adapters_policyconfig"),
        migrations.RunSQL(sql=THERE_ALREADY, reverse_sql=migrations.RunSQL.noop),
        migrations.RunSQL(sql=REFERRED_TO, reverse_sql=REFERRED_TO_BEFORE),
        migrations.RunSQL(sql=NUMBERED, reverse_sql=NUMBERED_BEFORE),
    ]
