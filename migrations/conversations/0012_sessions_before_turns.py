"""Whoever wants a session and a turn of it takes the session first, as a deletion does: else they wait in a circle."""

from importlib import import_module

from django.db import migrations

_ADMIT_BEFORE = import_module("migrations.conversations.0010_admitted_beside_deletion").ADMIT
_FINISH_BEFORE = import_module("migrations.conversations.0008_presumed_lost").FINISH

_INSTEAD = """\
        IF instead_of IS NOT NULL THEN
            UPDATE conversations_turn t SET presumed_lost_at = NULL, idempotency_key = NULL
            WHERE t.id = instead_of AND t.tenant_id = tenant AND t.presumed_lost_at IS NOT NULL;
            IF NOT FOUND THEN
                RAISE unique_violation;
            END IF;
        END IF;
"""
_INSERT = "        INSERT INTO conversations_turn (\n"

if not (_ADMIT_BEFORE.count(_INSTEAD) == _ADMIT_BEFORE.count(_INSERT) == 1):
    raise RuntimeError("attune_admit reads otherwise by now")

ADMIT = _ADMIT_BEFORE.replace(_INSTEAD, "").replace(_INSERT, _INSTEAD + _INSERT)

# As before, but a turn that was given up for lost is only said to be ("lost"): the caller has it found again and ends it
# then. In one transaction the turn would be held before its session.
FINISH = """
CREATE OR REPLACE FUNCTION attune_finish(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    answer jsonb := '{"state": "pending"}';
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    UPDATE conversations_turn t SET
        state = asked->>'state',
        reply = NULLIF(asked->'reply', 'null'),
        reply_hash = CASE WHEN asked->>'link' IS NULL THEN t.reply_hash
            ELSE encode(sha256(convert_to(t.request_hash || (asked->>'link'), 'UTF8')), 'hex') END,
        output_ids = (asked->>'output_ids')::int[],
        output_logprobs = (asked->>'output_logprobs')::float8[],
        spans = asked->'spans',
        finish_reason = asked->>'finish_reason',
        usage = asked->'usage',
        error = asked->>'error',
        first_token_ms = (asked->>'first_token_ms')::float8,
        latency_ms = (asked->>'latency_ms')::float8,
        completed_at = clock_timestamp(),
        idempotency_key = CASE WHEN asked->>'state' = 'complete' THEN t.idempotency_key END
    WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid AND t.state = 'pending';
    IF NOT FOUND THEN
        SELECT jsonb_build_object(
            'state', CASE WHEN t.presumed_lost_at IS NULL THEN t.state ELSE 'lost' END,
            'same', t.output_ids = (asked->>'output_ids')::int[]) INTO answer
        FROM conversations_turn t
        WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN COALESCE(answer, '{"state": null}'::jsonb);
END $$;
"""

# A turn that was given up for lost is pending again, as if nobody had; its session, which may have been taken to be over
# meanwhile, is looked at again. Does nothing to any other turn.
FOUND_AGAIN = """
CREATE FUNCTION attune_found_again(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    turn uuid := asked->>'turn';
    found_again boolean;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    PERFORM FROM conversations_session s
    WHERE s.id = (SELECT t.session_id FROM conversations_turn t WHERE t.id = turn AND t.tenant_id = tenant)
    FOR NO KEY UPDATE;
    UPDATE conversations_turn t SET state = 'pending', presumed_lost_at = NULL
    WHERE t.id = turn AND t.tenant_id = tenant AND t.presumed_lost_at IS NOT NULL;
    found_again := FOUND;
    IF found_again THEN
        UPDATE conversations_session s SET idle_at = NULL
        WHERE s.id = (SELECT t.session_id FROM conversations_turn t WHERE t.id = turn) AND s.idle_at IS NOT NULL;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('found', found_again);
END $$;
REVOKE ALL ON FUNCTION attune_found_again(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION attune_found_again(jsonb) TO attune_app, attune_system;
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0011_feedback_in_order_of_time")]

    operations = [
        migrations.RunSQL(sql=ADMIT, reverse_sql=_ADMIT_BEFORE),
        migrations.RunSQL(sql=FINISH, reverse_sql=_FINISH_BEFORE),
        migrations.RunSQL(sql=FOUND_AGAIN, reverse_sql="DROP FUNCTION attune_found_again(jsonb)"),
    ]
