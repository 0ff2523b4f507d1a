"""The look-up of a key gives only the scopes that its person's role gives now; one function says which."""

from importlib import import_module

from django.db import migrations

_BEFORE = import_module("migrations.keys.0004_key_policies").FIND_KEY

# What is not named here counts for nobody: a new scope or role gives nothing until it stands here.
SCOPES_OF = """
    CREATE FUNCTION attune_scopes_of(given text) RETURNS varchar[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
        SELECT CASE
            WHEN given IN ('owner', 'admin', 'member')
                THEN ARRAY['chat', 'rollout', 'read', 'manage', 'evaluate']::varchar[]
            WHEN given = 'viewer' THEN ARRAY['read']::varchar[]
            ELSE ARRAY[]::varchar[] END
    $$;
    REVOKE ALL ON FUNCTION attune_scopes_of(text) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION attune_scopes_of(text) TO attune_app, attune_system;
"""

FIND_KEY = """
    CREATE OR REPLACE FUNCTION attune_find_key(wanted text)
    RETURNS TABLE (id uuid, tenant_id uuid, user_id uuid, secret_sha256 bytea, scopes varchar[],
                   expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, may_act boolean,
                   policies uuid[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
    AS $$
        SELECT k.id, k.tenant_id, k.user_id, k.secret_sha256,
               ARRAY(SELECT held FROM unnest(k.scopes) held WHERE held = ANY (public.attune_scopes_of(m.role))),
               k.expires_at, k.revoked_at, k.last_used_at,
               COALESCE(u.is_active, false) AND m.id IS NOT NULL,
               CASE WHEN k.some_policies
                   THEN ARRAY(SELECT o.policy_id FROM public.keys_keypolicy o WHERE o.key_id = k.id) END
        FROM public.keys_apikey k
        LEFT JOIN public.accounts_user u ON u.id = k.user_id
        LEFT JOIN public.accounts_membership m ON m.user_id = k.user_id AND m.tenant_id = k.tenant_id
        WHERE k.public_id = wanted
    $$;
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_mails"), ("keys", "0005_limits_by_tenant")]

    operations = [
        migrations.RunSQL(sql=SCOPES_OF, reverse_sql="DROP FUNCTION attune_scopes_of(text)"),
        migrations.RunSQL(sql=FIND_KEY, reverse_sql=_BEFORE),
    ]
