"""A turn whose process is silent is presumed lost: its own ending still counts, until somebody answers it instead."""

from django.db import migrations, models

# What a request repeats. Where the process of a turn that was given up for lost is seen again, that turn is waited for.
REPEATED = """
CREATE FUNCTION attune_repeated(turn uuid, lost_after_s float8) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
    SELECT jsonb_build_object(
        'id', t.id, 'body_sha256', t.body_sha256, 'session', t.session_id, 'lost', t.presumed_lost_at IS NOT NULL,
        'state', CASE WHEN t.presumed_lost_at IS NOT NULL AND EXISTS (
                SELECT FROM conversations_turnholder h
                WHERE h.id = t.holder_id AND h.seen_at >= clock_timestamp() - make_interval(secs => lost_after_s))
            THEN 'pending' ELSE t.state END)
    FROM conversations_turn t WHERE t.id = turn
$$;
REVOKE ALL ON FUNCTION attune_repeated(uuid, float8) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION attune_repeated(uuid, float8) TO attune_app, attune_system;
"""

# As before, but for what it says of the repeated turn.
PLACE = """
CREATE OR REPLACE FUNCTION attune_place(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    by_key uuid := asked->>'key';
    named text := asked->>'session';
    links text[] := ARRAY(SELECT jsonb_array_elements_text(asked->'links'));
    first_try uuid;
    repeated jsonb;
    in_session uuid;
    parent uuid;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    IF asked->>'idempotency_key' IS NOT NULL THEN
        SELECT t.id INTO first_try FROM conversations_turn t
        WHERE t.tenant_id = tenant AND t.key_id = by_key AND t.idempotency_key = asked->>'idempotency_key';
    ELSIF (asked->>'is_retry')::boolean THEN
        -- a turn whose reply a later request took up has reached its client, so it is no lost one
        SELECT t.id INTO first_try FROM conversations_turn t
        WHERE t.tenant_id = tenant AND t.key_id = by_key AND t.body_sha256 = asked->>'body_sha256'
            AND t.next_turn_id IS NULL
            AND t.created_at >= clock_timestamp() - make_interval(secs => (asked->>'retry_window_s')::float8)
        ORDER BY t.created_at DESC, t.id DESC LIMIT 1;
    END IF;
    IF first_try IS NOT NULL THEN
        repeated := attune_repeated(first_try, (asked->>'lost_after_s')::float8);
    END IF;
    IF named IS NOT NULL THEN
        SELECT s.id INTO in_session FROM conversations_session s
        WHERE s.tenant_id = tenant AND s.user_id = (asked->>'user')::uuid AND s.policy_id = (asked->>'policy')::uuid
            AND (s.external_id = named OR s.id = (asked->>'session_id')::uuid)
        ORDER BY s.external_id = named DESC NULLS LAST LIMIT 1;
    END IF;
    -- of turns that share as much, one that nothing continues yet comes first, then the newest
    IF cardinality(links) > 0 AND in_session IS NOT NULL THEN
        SELECT t.id INTO parent FROM conversations_turn t
        WHERE t.tenant_id = tenant AND t.session_id = in_session AND t.reply_hash = ANY (links)
            AND t.state IN ('complete', 'aborted')
        ORDER BY array_position(links, t.reply_hash::text) DESC, t.next_turn_id IS NOT NULL,
            t.created_at DESC, t.id DESC LIMIT 1;
    ELSIF cardinality(links) > 0 AND named IS NULL THEN
        SELECT t.id, t.session_id INTO parent, in_session FROM conversations_turn t
        JOIN conversations_session s ON s.id = t.session_id
        LEFT JOIN accounts_enduser e ON e.id = s.end_user_id
        WHERE t.tenant_id = tenant AND t.key_id = by_key AND t.policy_id = (asked->>'policy')::uuid
            AND t.reply_hash = ANY (links) AND t.kind = asked->>'kind' AND t.state IN ('complete', 'aborted')
            AND e.external_id IS NOT DISTINCT FROM asked->>'end_user'
        ORDER BY array_position(links, t.reply_hash::text) DESC, t.next_turn_id IS NOT NULL,
            t.created_at DESC, t.id DESC LIMIT 1;
    END IF;
    IF named IS NULL AND parent IS NULL AND repeated IS NOT NULL THEN
        -- the first try began a session and came to nothing: this one goes on in it
        in_session := repeated->>'session';
    END IF;
    asked := jsonb_build_object(
        'repeated', repeated || jsonb_build_object('name', (
            SELECT COALESCE(s.external_id, s.id::text) FROM conversations_session s
            WHERE s.id = (repeated->>'session')::uuid)),
        'session', (
            SELECT jsonb_build_object(
                'id', s.id, 'kind', s.kind, 'name', COALESCE(s.external_id, s.id::text), 'end_user', e.external_id)
            FROM conversations_session s LEFT JOIN accounts_enduser e ON e.id = s.end_user_id
            WHERE s.id = in_session),
        'parent', CASE WHEN parent IS NOT NULL THEN attune_parent(parent) END);
    PERFORM set_config('attune.tenant', before, true);
    RETURN asked;
END $$;
"""

# As before, but a request may take the place of a turn that was given up for lost. From then on that one has failed for
# good; where it ended after all meanwhile, or somebody else took its place, the caller looks again.
ADMIT = """
CREATE OR REPLACE FUNCTION attune_admit(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    turn uuid := asked->>'turn';
    in_session uuid := asked->>'session';
    parent uuid := asked->>'parent';
    answers uuid := COALESCE(asked->>'answers', asked->>'parent');
    instead_of uuid := asked->>'instead_of';
    is_side boolean := asked->>'side';
    person uuid;
    answered record;
    conflict boolean := false;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    IF NOT EXISTS (SELECT FROM conversations_turn t WHERE t.id = turn) THEN
    BEGIN
        IF instead_of IS NOT NULL THEN
            UPDATE conversations_turn t SET presumed_lost_at = NULL, idempotency_key = NULL
            WHERE t.id = instead_of AND t.tenant_id = tenant AND t.presumed_lost_at IS NOT NULL;
            IF NOT FOUND THEN
                RAISE unique_violation;
            END IF;
        END IF;
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

# As before, but the ending of a turn that was only given up for lost counts: as if nobody had. A session that was taken
# to be over meanwhile is looked at again.
FINISH = """
CREATE OR REPLACE FUNCTION attune_finish(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    answer jsonb := '{"state": "pending"}';
    in_session uuid;
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
        UPDATE conversations_turn t SET state = 'pending', presumed_lost_at = NULL
        WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid AND t.presumed_lost_at IS NOT NULL
        RETURNING t.session_id INTO in_session;
        IF FOUND THEN
            UPDATE conversations_session s SET idle_at = NULL WHERE s.id = in_session AND s.idle_at IS NOT NULL;
            answer := attune_finish(asked);
        ELSE
            SELECT jsonb_build_object('state', t.state, 'same', t.output_ids = (asked->>'output_ids')::int[]) INTO answer
            FROM conversations_turn t WHERE t.id = (asked->>'turn')::uuid;
        END IF;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN COALESCE(answer, '{"state": null}'::jsonb);
END $$;
"""

# As before, but it is a presumption, and the turn keeps its idempotency key until somebody takes its place.
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
        state = 'failed', error = 'the gateway stopped', completed_at = clock_timestamp(),
        presumed_lost_at = clock_timestamp()
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
    dependencies = [("conversations", "0007_unseen_holders")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="presumed_lost_at",
            field=models.DateTimeField(
                help_text="When it was taken to have failed because its process was silent; its own ending still counts.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.CheckConstraint(
                condition=models.Q(("presumed_lost_at__isnull", True), ("state", "failed"), _connector="OR"),
                name="turn_presumed_lost_has_failed",
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("presumed_lost_at__isnull", False)),
                fields=["created_at"],
                name="turn_presumed_lost",
            ),
        ),
        migrations.RunSQL(sql=REPEATED, reverse_sql="DROP FUNCTION attune_repeated(uuid, float8)"),
        *(
            migrations.RunSQL(sql=sql, reverse_sql=migrations.RunSQL.noop)
            for sql in (PLACE, ADMIT, FINISH, END_LOST)
        ),
    ]
