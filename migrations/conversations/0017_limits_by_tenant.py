"""The look-up tells what a tenant asks of itself (`own`) from what an operator set for it (`tenant`)."""

from django.db import migrations

LOOK_UP = """
CREATE OR REPLACE FUNCTION attune_look_up(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    key record;
    policy jsonb;
    version jsonb;
    place jsonb;
    engines jsonb;
    answer jsonb;
BEGIN
    SELECT * INTO key FROM attune_find_key(asked->>'public_id');
    IF key.id IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM set_config('attune.tenant', key.tenant_id::text, true);
    SELECT jsonb_build_object('id', p.id, 'temperature', p.temperature, 'live', p.live_id) INTO policy
    FROM adapters_policy p WHERE p.tenant_id = key.tenant_id AND p.name = asked->>'policy_name'
        AND (key.policies IS NULL OR p.id = ANY (key.policies));
    IF policy IS NOT NULL THEN
        SELECT jsonb_build_object('id', v.id, 'number', v.number, 'sha256', v.sha256, 'served_name', v.served_name)
        INTO version FROM adapters_adapterversion v
        WHERE v.tenant_id = key.tenant_id AND v.policy_id = (policy->>'id')::uuid
            AND CASE WHEN asked->>'number' IS NULL THEN v.id = (policy->>'live')::uuid
                ELSE v.number = (asked->>'number')::int END;
        SELECT jsonb_agg(jsonb_build_object('id', e.id, 'url', e.url, 'proven', EXISTS (
            SELECT FROM engines_loadedadapter l JOIN engines_desiredadapter d ON d.id = l.adapter_id
            WHERE l.engine_id = e.id AND l.state = 'probed' AND l.boot_id = e.boot_id
                AND d.served_name = version->>'served_name')))
        INTO engines FROM engines_engine e WHERE e.state = 'ready';
        place := attune_place(asked || jsonb_build_object(
            'tenant', key.tenant_id, 'user', key.user_id, 'key', key.id, 'policy', policy->>'id'));
    END IF;
    answer := jsonb_build_object(
        'key', jsonb_build_object(
            'id', key.id, 'tenant_id', key.tenant_id, 'user_id', key.user_id, 'scopes', key.scopes, 'policies', key.policies,
            'secret_sha256', encode(key.secret_sha256, 'hex'), 'may_act', key.may_act,
            'ended', key.revoked_at IS NOT NULL OR COALESCE(key.expires_at <= clock_timestamp(), false),
            'unseen_s', EXTRACT(epoch FROM clock_timestamp() - key.last_used_at)),
        'policy', policy,
        'version', version,
        'limits', (
            SELECT jsonb_object_agg(CASE WHEN l.key_id IS NOT NULL THEN 'key' WHEN l.by_tenant THEN 'own' ELSE 'tenant' END, jsonb_build_object(
                'requests', l.requests_per_minute, 'tokens', l.tokens_per_minute, 'concurrent', l.concurrent))
            FROM keys_limit l WHERE l.tenant_id = key.tenant_id AND (l.key_id = key.id OR l.key_id IS NULL)),
        'engines', COALESCE(engines, '[]'::jsonb),
        'paused', (SELECT t.pause_reason FROM accounts_tenant t WHERE t.id = key.tenant_id AND t.paused_at IS NOT NULL),
        'place', place);
    PERFORM set_config('attune.tenant', before, true);
    RETURN answer;
END $$;
"""

BEFORE = LOOK_UP.replace(
    "CASE WHEN l.key_id IS NOT NULL THEN 'key' WHEN l.by_tenant THEN 'own' ELSE 'tenant' END",
    "CASE WHEN l.key_id IS NULL THEN 'tenant' ELSE 'key' END",
)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0016_paused_tenants"), ("keys", "0005_limits_by_tenant")]

    operations = [migrations.RunSQL(sql=LOOK_UP, reverse_sql=BEFORE)]
