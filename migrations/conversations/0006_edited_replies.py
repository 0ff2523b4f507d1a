"""What a request adds is about the turn that wrote the last reply in it, also where the client changed that reply."""

from django.db import migrations, models

# The turn of a session that was asked the same and whose reply the client changed; the one that has no next state first.
EDITED = """
CREATE FUNCTION attune_edited(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    found uuid;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    SELECT t.id INTO found FROM conversations_turn t
    WHERE t.session_id = (asked->>'session')::uuid AND t.tenant_id = (asked->>'tenant')::uuid
        AND t.request_hash = asked->>'request' AND t.state IN ('complete', 'aborted') AND t.reply IS NOT NULL
    ORDER BY t.next_turn_id IS NOT NULL, t.created_at DESC, t.id DESC LIMIT 1;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('turn', found);
END $$;
"""

# As before, but what was added may be about another turn than the one whose tokens are continued.
ADMIT = """
CREATE OR REPLACE FUNCTION attune_admit(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    turn uuid := asked->>'turn';
    in_session uuid := asked->>'session';
    parent uuid := asked->>'parent';
    answers uuid := COALESCE(asked->>'answers', asked->>'parent');
    is_side boolean := asked->>'side';
    person uuid;
    answered record;
    conflict boolean := false;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    IF NOT EXISTS (SELECT FROM conversations_turn t WHERE t.id = turn) THEN
    BEGIN
        IF NOT (asked->>'begins')::boolean THEN
            UPDATE conversations_session SET last_turn_at = clock_timestamp(), idle_at = NULL WHERE id = in_session;
        ELSE
            IF asked->>'end_user' IS NOT NULL THEN
                INSERT INTO accounts_enduser (id, tenant_id, created_at, external_id)
                VALUES ((asked->>'new_end_user')::uuid, tenant, clock_timestamp(), asked->>'end_user')
                ON CONFLICT (tenant_id, external_id) DO NOTHING;
                SELECT e.id INTO STRICT person FROM accounts_enduser e
                WHERE e.tenant_id = tenant AND e.external_id = asked->>'end_user';
            END IF;
            INSERT INTO conversations_session
                (id, tenant_id, created_at, user_id, end_user_id, policy_id, kind, external_id, last_turn_at)
            VALUES (in_session, tenant, clock_timestamp(), (asked->>'user')::uuid, person,
                    (asked->>'policy')::uuid, asked->>'kind', asked->>'external_id', clock_timestamp());
        END IF;
        INSERT INTO conversations_turn (
            id, tenant_id, created_at, session_id, parent_id, key_id, policy_id, version_id, kind, side, state,
            messages, tools, sampling, template_kwargs, prompt_ids, prompt_source, prompt_reason, memory, request_hash,
            idempotency_key, body_sha256, engine_id,
            reply_hash, output_ids, output_logprobs, spans, finish_reason, usage, error)
        VALUES (
            turn, tenant, clock_timestamp(), in_session, parent, (asked->>'key')::uuid, (asked->>'policy')::uuid,
            (asked->>'version')::uuid, asked->>'kind', is_side, 'pending',
            asked->'messages', NULLIF(asked->'tools', 'null'), asked->'sampling', asked->'template_kwargs',
            (asked->>'prompt_ids')::int[], asked->>'prompt_source', asked->>'prompt_reason',
            NULLIF(asked->'memory', 'null'),
            asked->>'request_hash', asked->>'idempotency_key', asked->>'body_sha256', (asked->>'engine')::uuid,
            '', '{}', '{}', '[]', '', '{}', '');
        IF answers IS NOT NULL AND NOT is_side AND jsonb_array_length(asked->'added') > 0 THEN
            UPDATE conversations_turn t
            SET next_state = asked->'added', next_state_at = clock_timestamp(), next_turn_id = turn,
                reply_edited = COALESCE((asked->>'edited')::boolean, false)
            WHERE t.id = answers AND t.next_turn_id IS NULL AND t.next_state IS NULL
            RETURNING t.state, t.side, t.kind INTO answered;
            IF FOUND AND answered.state = 'complete' AND NOT answered.side AND answered.kind IN ('live', 'rollout') THEN
                PERFORM attune_ask_for_judging(tenant, answers);
            END IF;
        END IF;
    EXCEPTION WHEN unique_violation THEN
        -- somebody else wrote the same session or idempotency key meanwhile
        conflict := true;
    END;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('conflict', conflict);
END $$;
"""

_RIGHTS = """
REVOKE ALL ON FUNCTION attune_edited(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION attune_edited(jsonb) TO attune_app, attune_system;
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0005_turn_holders")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="reply_edited",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether the client changed the reply before it went on; what came next is about that text.",
            ),
        ),
        migrations.RunSQL(sql=EDITED + _RIGHTS, reverse_sql="DROP FUNCTION attune_edited(jsonb)"),
        migrations.RunSQL(sql=ADMIT, reverse_sql=migrations.RunSQL.noop),
    ]
