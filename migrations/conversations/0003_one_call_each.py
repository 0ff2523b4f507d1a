"""What the gateway asks of the ledger, one call each: look up, admit, finish.

Each function takes one JSON object and returns one, so that a process can send many requests' calls in one
statement. Each sets the tenant before it touches a row and puts back what was set: row-level security holds inside as
it does outside (they run as whoever calls them).
"""

from django.db import migrations

# Where a request belongs: the turn it repeats, its session, the turn it continues.
PLACE = """
CREATE FUNCTION attune_place(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    by_key uuid := asked->>'key';
    named text := asked->>'session';
    links text[] := ARRAY(SELECT jsonb_array_elements_text(asked->'links'));
    repeated jsonb;
    in_session uuid;
    parent uuid;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    IF asked->>'idempotency_key' IS NOT NULL THEN
        SELECT jsonb_build_object('id', t.id, 'state', t.state, 'body_sha256', t.body_sha256, 'session', t.session_id)
        INTO repeated FROM conversations_turn t
        WHERE t.tenant_id = tenant AND t.key_id = by_key AND t.idempotency_key = asked->>'idempotency_key';
    ELSIF (asked->>'is_retry')::boolean THEN
        -- a turn whose reply a later request took up has reached its client, so it is no lost one
        SELECT jsonb_build_object('id', t.id, 'state', t.state, 'body_sha256', t.body_sha256, 'session', t.session_id)
        INTO repeated FROM conversations_turn t
        WHERE t.tenant_id = tenant AND t.key_id = by_key AND t.body_sha256 = asked->>'body_sha256'
            AND t.next_turn_id IS NULL
            AND t.created_at >= clock_timestamp() - make_interval(secs => (asked->>'retry_window_s')::float8)
        ORDER BY t.created_at DESC, t.id DESC LIMIT 1;
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

# What continuing a turn needs of it. Runs within the tenant.
PARENT = """
CREATE FUNCTION attune_parent(turn uuid) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
    SELECT jsonb_build_object(
        'id', t.id, 'ids', t.prompt_ids || t.output_ids, 'finish_reason', t.finish_reason,
        'tools', t.tools, 'template_kwargs', t.template_kwargs, 'reply_hash', t.reply_hash)
    FROM conversations_turn t WHERE t.id = turn
$$;
"""

# The newest replies of a session whose client changed what came before them.
RECENT = """
CREATE FUNCTION attune_recent(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    found jsonb;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    SELECT jsonb_agg(jsonb_build_object('turn', attune_parent(r.id), 'reply', r.reply, 'messages', r.messages)
                     ORDER BY r.created_at DESC, r.id DESC) INTO found
    FROM (SELECT t.id, t.reply, t.messages, t.created_at FROM conversations_turn t
          WHERE t.session_id = (asked->>'session')::uuid AND t.reply IS NOT NULL
          ORDER BY t.created_at DESC, t.id DESC LIMIT (asked->>'most')::int) r;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('turns', COALESCE(found, '[]'::jsonb));
END $$;
"""

# Everything that a request must know before it is admitted. The caller compares the secret's hash, and uses nothing
# of the rest before it did.
LOOK_UP = """
CREATE FUNCTION attune_look_up(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
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
    FROM adapters_policy p WHERE p.tenant_id = key.tenant_id AND p.name = asked->>'policy_name';
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
            'id', key.id, 'tenant_id', key.tenant_id, 'user_id', key.user_id, 'scopes', key.scopes,
            'secret_sha256', encode(key.secret_sha256, 'hex'), 'may_act', key.may_act,
            'ended', key.revoked_at IS NOT NULL OR COALESCE(key.expires_at <= clock_timestamp(), false),
            'unseen_s', EXTRACT(epoch FROM clock_timestamp() - key.last_used_at)),
        'policy', policy,
        'version', version,
        'limits', (
            SELECT jsonb_object_agg(CASE WHEN l.key_id IS NULL THEN 'tenant' ELSE 'key' END, jsonb_build_object(
                'requests', l.requests_per_minute, 'tokens', l.tokens_per_minute, 'concurrent', l.concurrent))
            FROM keys_limit l WHERE l.tenant_id = key.tenant_id AND (l.key_id = key.id OR l.key_id IS NULL)),
        'engines', COALESCE(engines, '[]'::jsonb),
        'place', place);
    PERFORM set_config('attune.tenant', before, true);
    RETURN answer;
END $$;
"""

# As `kernel.outbox.enqueue`: a row that stands for this work already is held until the caller commits.
ASK = """
CREATE FUNCTION attune_ask_for_judging(tenant uuid, turn uuid) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    LOOP
        INSERT INTO kernel_outboxmessage (tenant_id, task, queue, kwargs, dedupe_key, created_at, available_at)
        VALUES (tenant, 'workers.judging.judge_turn', 'judge',
                jsonb_build_object('turn_id', turn, 'tenant_id', tenant), 'judge:' || turn,
                clock_timestamp(), clock_timestamp())
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        PERFORM FROM kernel_outboxmessage WHERE dedupe_key = 'judge:' || turn AND sent_at IS NULL FOR UPDATE;
        EXIT WHEN FOUND;
    END LOOP;
END $$;
"""

# The pending turn, its session, its parent's next state and the call for a judge. Sent again (its answer was lost) it
# changes nothing.
ADMIT = """
CREATE FUNCTION attune_admit(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    tenant uuid := asked->>'tenant';
    turn uuid := asked->>'turn';
    in_session uuid := asked->>'session';
    parent uuid := asked->>'parent';
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
            messages, tools, sampling, template_kwargs, prompt_ids, prompt_source, prompt_reason, request_hash,
            idempotency_key, body_sha256, engine_id,
            reply_hash, output_ids, output_logprobs, spans, finish_reason, usage, error)
        VALUES (
            turn, tenant, clock_timestamp(), in_session, parent, (asked->>'key')::uuid, (asked->>'policy')::uuid,
            (asked->>'version')::uuid, asked->>'kind', is_side, 'pending',
            asked->'messages', NULLIF(asked->'tools', 'null'), asked->'sampling', asked->'template_kwargs',
            (asked->>'prompt_ids')::int[], asked->>'prompt_source', asked->>'prompt_reason',
            asked->>'request_hash', asked->>'idempotency_key', asked->>'body_sha256', (asked->>'engine')::uuid,
            '', '{}', '{}', '[]', '', '{}', '');
        IF parent IS NOT NULL AND NOT is_side AND jsonb_array_length(asked->'added') > 0 THEN
            UPDATE conversations_turn t
            SET next_state = asked->'added', next_state_at = clock_timestamp(), next_turn_id = turn
            WHERE t.id = parent AND t.next_turn_id IS NULL AND t.next_state IS NULL
            RETURNING t.state, t.side, t.kind INTO answered;
            IF FOUND AND answered.state = 'complete' AND NOT answered.side AND answered.kind IN ('live', 'rollout') THEN
                PERFORM attune_ask_for_judging(tenant, parent);
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

# One conditional update: a pending turn ends, once and for good. Says how it had ended where it was not pending.
FINISH = """
CREATE FUNCTION attune_finish(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
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
        SELECT jsonb_build_object('state', t.state, 'same', t.output_ids = (asked->>'output_ids')::int[]) INTO answer
        FROM conversations_turn t WHERE t.id = (asked->>'turn')::uuid;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN COALESCE(answer, '{"state": null}'::jsonb);
END $$;
"""

_FUNCTIONS = {
    "attune_parent(uuid)": PARENT,
    "attune_place(jsonb)": PLACE,
    "attune_recent(jsonb)": RECENT,
    "attune_look_up(jsonb)": LOOK_UP,
    "attune_ask_for_judging(uuid, uuid)": ASK,
    "attune_admit(jsonb)": ADMIT,
    "attune_finish(jsonb)": FINISH,
}


def _made(signature: str, sql: str) -> migrations.RunSQL:
    rights = (
        f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC;"
        f"GRANT EXECUTE ON FUNCTION {signature} TO attune_app, attune_system;"
    )
    return migrations.RunSQL(sql=sql + rights, reverse_sql=f"DROP FUNCTION {signature}")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("conversations", "0002_finding_turns"),
        ("engines", "0002_what_an_adapter_must_answer"),
        ("kernel", "0001_initial"),
        ("keys", "0003_limits"),
    ]

    operations = [_made(signature, sql) for signature, sql in _FUNCTIONS.items()]
