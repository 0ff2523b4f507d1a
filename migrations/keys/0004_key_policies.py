"""A key may be limited to some policies: its look-up says which."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect

# `policies` NULL: every one of the tenant. A key of some policies that are gone may name none.
FIND_KEY = """
    DROP FUNCTION attune_find_key(text);
    CREATE FUNCTION attune_find_key(wanted text)
    RETURNS TABLE (id uuid, tenant_id uuid, user_id uuid, secret_sha256 bytea, scopes varchar[],
                   expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, may_act boolean,
                   policies uuid[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
    AS $$
        SELECT k.id, k.tenant_id, k.user_id, k.secret_sha256, k.scopes::varchar[], k.expires_at, k.revoked_at,
               k.last_used_at,
               EXISTS (SELECT 1 FROM public.accounts_user u
                       JOIN public.accounts_membership m ON m.user_id = u.id AND m.tenant_id = k.tenant_id
                       WHERE u.id = k.user_id AND u.is_active),
               CASE WHEN k.some_policies
                   THEN ARRAY(SELECT o.policy_id FROM public.keys_keypolicy o WHERE o.key_id = k.id) END
        FROM public.keys_apikey k WHERE k.public_id = wanted
    $$;
    REVOKE ALL ON FUNCTION attune_find_key(text) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION attune_find_key(text) TO attune_app, attune_system;
"""

FIND_KEY_BEFORE = """
    DROP FUNCTION attune_find_key(text);
    CREATE FUNCTION attune_find_key(wanted text)
    RETURNS TABLE (id uuid, tenant_id uuid, user_id uuid, secret_sha256 bytea, scopes varchar[],
                   expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, may_act boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
    AS $$
        SELECT k.id, k.tenant_id, k.user_id, k.secret_sha256, k.scopes::varchar[], k.expires_at, k.revoked_at,
               k.last_used_at,
               EXISTS (SELECT 1 FROM public.accounts_user u
                       JOIN public.accounts_membership m ON m.user_id = u.id AND m.tenant_id = k.tenant_id
                       WHERE u.id = k.user_id AND u.is_active)
        FROM public.keys_apikey k WHERE k.public_id = wanted
    $$;
    REVOKE ALL ON FUNCTION attune_find_key(text) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION attune_find_key(text) TO attune_app, attune_system;
"""

ONE_TENANT = """
ALTER TABLE keys_keypolicy ADD CONSTRAINT key_policy_key_of_the_tenant
    FOREIGN KEY (tenant_id, key_id) REFERENCES keys_apikey (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE keys_keypolicy ADD CONSTRAINT key_policy_policy_of_the_tenant
    FOREIGN KEY (tenant_id, policy_id) REFERENCES adapters_policy (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
ONE_TENANT_BEFORE = """
ALTER TABLE keys_keypolicy DROP CONSTRAINT key_policy_policy_of_the_tenant;
ALTER TABLE keys_keypolicy DROP CONSTRAINT key_policy_key_of_the_tenant;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_invitation"),
        ("adapters", "0003_configurations"),
        ("keys", "0003_limits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyPolicy",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "key policies",
            },
        ),
        migrations.AddField(
            model_name="apikey",
            name="some_policies",
            field=models.BooleanField(
                default=False, help_text="Only those of its `KeyPolicy` rows; where they are gone, none."
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="key_of_its_tenant"),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("some_policies", False),
                    models.Q(("scopes__overlap", ["read", "manage"]), _negated=True),
                    _connector="OR",
                ),
                name="key_of_some_policies_only_talks",
            ),
        ),
        migrations.AddField(
            model_name="keypolicy",
            name="key",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="policies", to="keys.apikey"
            ),
        ),
        migrations.AddField(
            model_name="keypolicy",
            name="policy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="adapters.policy"
            ),
        ),
        migrations.AddField(
            model_name="keypolicy",
            name="tenant",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="keypolicy",
            constraint=models.UniqueConstraint(fields=("key", "policy"), name="key_policy_once"),
        ),
        protect("keys_keypolicy"),
        migrations.RunSQL(sql=ONE_TENANT, reverse_sql=ONE_TENANT_BEFORE),
        migrations.RunSQL(sql=FIND_KEY, reverse_sql=FIND_KEY_BEFORE),
    ]
