"""Histograms are kept as the first bucket and the counts from there on: a page adds up hundreds of them."""

from django.db import migrations, models

DENSE = """
CREATE FUNCTION attune_dense(counts jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN counts = '{}' THEN '[]' ELSE
        (SELECT jsonb_build_array(min(name::int)) || (
            SELECT jsonb_agg(coalesce((counts->>bucket::text)::bigint, 0) ORDER BY bucket)
              FROM generate_series(min(name::int), max(name::int)) AS bucket)
           FROM jsonb_object_keys(counts) AS name) END
$$;
ALTER TABLE dashboard_turnrollup DISABLE TRIGGER rollup_never_changed;
UPDATE dashboard_turnrollup SET first_token_ms = attune_dense(first_token_ms), latency_ms = attune_dense(latency_ms);
ALTER TABLE dashboard_turnrollup ENABLE TRIGGER rollup_never_changed,
    ADD CONSTRAINT rollup_counts_by_bucket CHECK (
        jsonb_typeof(first_token_ms) = 'array' AND jsonb_typeof(latency_ms) = 'array');
DROP FUNCTION attune_dense(jsonb);
"""
SPARSE = """
CREATE FUNCTION attune_sparse(counts jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg((counts->>0)::int + place - 2, count), '{}')
      FROM jsonb_array_elements(counts) WITH ORDINALITY AS one (count, place)
     WHERE place > 1 AND count <> '0'
$$;
ALTER TABLE dashboard_turnrollup DISABLE TRIGGER rollup_never_changed, DROP CONSTRAINT rollup_counts_by_bucket;
UPDATE dashboard_turnrollup SET first_token_ms = attune_sparse(first_token_ms), latency_ms = attune_sparse(latency_ms);
ALTER TABLE dashboard_turnrollup ENABLE TRIGGER rollup_never_changed;
DROP FUNCTION attune_sparse(jsonb);
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0002_rollups")]

    operations = [
        migrations.AlterField(
            model_name="turnrollup",
            name="first_token_ms",
            field=models.JSONField(
                help_text="The first bucket of the histogram, then how many durations fell into each from there on."
            ),
        ),
        migrations.RunSQL(sql=DENSE, reverse_sql=SPARSE),
    ]
