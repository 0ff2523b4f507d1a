"""Which of the hints there are rest on what the user said alone. Beside the column's own migration, whose lock on the table nobody
should wait for while all turns are read."""

from django.db import migrations

# the cue judge has never read anything but the user's messages for a hint; of the others it is known where nobody else spoke
KNOWN = """
    UPDATE judging_hint AS hint SET by_user = true
    FROM judging_judgement AS judgement JOIN conversations_turn AS turn ON turn.id = judgement.turn_id
    WHERE judgement.id = hint.judgement_id AND turn.next_state IS NOT NULL AND turn.next_state <> '[]'
      AND (judgement.judge = 'cue-deterministic'
           OR NOT jsonb_path_exists(turn.next_state, '$[*] ? (@.role != "user")'));
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0006_whose_words")]

    operations = [migrations.RunSQL(sql=KNOWN, reverse_sql=migrations.RunSQL.noop)]
