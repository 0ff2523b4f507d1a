"""A hint says whether it rests on what the user said alone, and may be kept as that person's wish."""

from django.db import migrations, models

# the cue judge has never read anything but the user's messages for a hint; of the others it is known where nobody else spoke
KNOWN = """
    UPDATE judging_hint AS hint SET by_user = true
    FROM judging_judgement AS judgement JOIN conversations_turn AS turn ON turn.id = judgement.turn_id
    WHERE judgement.id = hint.judgement_id AND turn.next_state IS NOT NULL AND turn.next_state <> '[]'
      AND (judgement.judge = 'cue-deterministic'
           OR NOT jsonb_path_exists(turn.next_state, '$[*] ? (@.role != "user")'));
"""


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0005_open_or_dead_judgements"),
        ("conversations", "0016_paused_tenants"),
    ]

    operations = [
        migrations.AddField(
            model_name="hint",
            name="by_user",
            field=models.BooleanField(
                default=False,
                help_text="Nothing but what the user said is behind it: it may be kept as that person's wish.",
            ),
        ),
        migrations.RunSQL(sql=KNOWN, reverse_sql=migrations.RunSQL.noop),
    ]
