"""A holder whose row is missing is not gone: it has as long to say that it is there as one that has just said so."""

from django.db import migrations

# Rows are missing after a restore, or where somebody deleted them, while their gateways live and beat. Whoever misses
# one makes it as of now; a gateway that lives goes on from there.
END_LOST = """
CREATE OR REPLACE FUNCTION attune_end_lost(asked jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    ended boolean;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    INSERT INTO conversations_turnholder (id, seen_at)
    SELECT t.holder_id, clock_timestamp() FROM conversations_turn t
    WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid AND t.state = 'pending'
        AND t.holder_id IS NOT NULL
    ON CONFLICT (id) DO NOTHING;
    UPDATE conversations_turn t SET
        state = 'failed', error = 'the gateway stopped', completed_at = clock_timestamp(), idempotency_key = NULL
    FROM conversations_turnholder h
    WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid AND t.state = 'pending'
        AND h.id = t.holder_id
        AND h.seen_at < clock_timestamp() - make_interval(secs => (asked->>'lost_after_s')::float8);
    ended := FOUND;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('lost', ended);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0006_edited_replies")]

    operations = [migrations.RunSQL(sql=END_LOST, reverse_sql=migrations.RunSQL.noop)]
