"""Mails that were given up keep their words until these have ended, so that they can be replayed."""

import django.db.models.functions.datetime
from django.db import migrations, models

# what is on its way goes on with the tries that it has left; a code has ended by the time that it is given up
ON_THEIR_WAY = r"""
UPDATE accounts_mail SET retries = attempts WHERE state = 'pending';
UPDATE accounts_mail SET words_until = created_at + interval '3 days'
WHERE state = 'pending' AND kind NOT LIKE '%\_code';
"""
WORDLESS = "UPDATE accounts_mail SET sealed = '' WHERE state = 'dead'"


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_mails"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="mail",
            name="mail_keeps_its_words_while_pending",
        ),
        migrations.AddField(
            model_name="mail",
            name="retries",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Failures since it was written or replayed."
            ),
        ),
        migrations.AddField(
            model_name="mail",
            name="words_until",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="When what it says has ended; a dead mail keeps its words until then.",
            ),
        ),
        migrations.AddIndex(
            model_name="mail",
            index=models.Index(
                condition=models.Q(("state", "dead")), fields=["words_until"], name="mail_dead"
            ),
        ),
        migrations.AddConstraint(
            model_name="mail",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "pending"), models.Q(("sealed", ""), _negated=True)),
                    models.Q(("claimed_until__isnull", True), ("sealed", ""), ("state", "sent")),
                    models.Q(("claimed_until__isnull", True), ("state", "dead")),
                    _connector="OR",
                ),
                name="mail_keeps_its_words_until_it_is_sent",
            ),
        ),
        migrations.RunSQL(sql=ON_THEIR_WAY, reverse_sql=WORDLESS),
    ]
