"""Which process holds a pending turn, so that a turn whose process died is known to be lost within seconds."""

from django.db import migrations, models

# Whoever admits a turn names itself once per connection; what comes over another connection is held by nobody.
HELD_BY = """
ALTER TABLE conversations_turn
    ALTER COLUMN holder_id SET DEFAULT NULLIF(current_setting('attune.holder', true), '')::uuid
"""

BEAT = """
CREATE FUNCTION attune_beat(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO conversations_turnholder (id, seen_at) VALUES ((asked->>'holder')::uuid, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;
    RETURN '{}';
END $$;
"""

# As `attune_finish`: once and for good. A holder that never said that it is there has as long as one that did.
END_LOST = """
CREATE FUNCTION attune_end_lost(asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    ended boolean;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    UPDATE conversations_turn t SET
        state = 'failed', error = 'the gateway stopped', completed_at = clock_timestamp(), idempotency_key = NULL
    WHERE t.id = (asked->>'turn')::uuid AND t.tenant_id = (asked->>'tenant')::uuid AND t.state = 'pending'
        AND t.holder_id IS NOT NULL
        AND COALESCE((SELECT h.seen_at FROM conversations_turnholder h WHERE h.id = t.holder_id), t.created_at)
            < clock_timestamp() - make_interval(secs => (asked->>'lost_after_s')::float8);
    ended := FOUND;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('lost', ended);
END $$;
"""


def _made(signature: str, sql: str) -> migrations.RunSQL:
    rights = (
        f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC;"
        f"GRANT EXECUTE ON FUNCTION {signature} TO attune_app, attune_system;"
    )
    return migrations.RunSQL(sql=sql + rights, reverse_sql=f"DROP FUNCTION {signature}")


class Migration(migrations.Migration):
    dependencies = [("conversations", "0004_what_a_prompt_told")]

    operations = [
        migrations.CreateModel(
            name="TurnHolder",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="turn",
            name="holder_id",
            field=models.UUIDField(
                help_text="The process that admitted it; the database takes it from the connection.",
                null=True,
            ),
        ),
        migrations.RunSQL(
            sql=HELD_BY, reverse_sql="ALTER TABLE conversations_turn ALTER COLUMN holder_id DROP DEFAULT"
        ),
        _made("attune_beat(jsonb)", BEAT),
        _made("attune_end_lost(jsonb)", END_LOST),
    ]
