"""Histograms are kept as the first bucket and the counts from there on: a page adds up hundreds of them."""

from django.db import migrations, models

# what was kept is thrown away and made anew, by the next migration in any case: to write millions of rows again would hold up
# whoever finishes a turn meanwhile, whose trigger looks for its sum here
ANEW = """
DELETE FROM dashboard_turnrollup;
ALTER TABLE dashboard_turnrollup ADD CONSTRAINT rollup_counts_by_bucket CHECK (
    jsonb_typeof(first_token_ms) = 'array' AND jsonb_typeof(latency_ms) = 'array');
"""
AND_BACK = """
DELETE FROM dashboard_turnrollup;
ALTER TABLE dashboard_turnrollup DROP CONSTRAINT rollup_counts_by_bucket;
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
        migrations.RunSQL(sql=ANEW, reverse_sql=AND_BACK),
    ]
