"""The key look-up also says whether the key's user may still act, and when the key was last seen."""

from django.db import migrations

FIND_KEY = """
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

FIND_KEY_BEFORE = """
    DROP FUNCTION attune_find_key(text);
    CREATE FUNCTION attune_find_key(wanted text)
    RETURNS TABLE (id uuid, tenant_id uuid, user_id uuid, secret_sha256 bytea, scopes varchar[],
                   expires_at timestamptz, revoked_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
    AS $$
        SELECT k.id, k.tenant_id, k.user_id, k.secret_sha256, k.scopes::varchar[], k.expires_at, k.revoked_at
        FROM public.keys_apikey k WHERE k.public_id = wanted
    $$;
    REVOKE ALL ON FUNCTION attune_find_key(text) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION attune_find_key(text) TO attune_app, attune_system;
"""


class Migration(migrations.Migration):
    dependencies = [("keys", "0001_initial"), ("accounts", "0001_initial")]

    operations = [migrations.RunSQL(sql=FIND_KEY, reverse_sql=FIND_KEY_BEFORE)]
