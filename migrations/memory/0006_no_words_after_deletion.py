"""What is deleted keeps no topics, and a lesson that is over no replies; what a tool returned was nobody's wish."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.utils.crypto import salted_hmac

LESSONS = """
    UPDATE memory_lesson SET figures = figures - ARRAY['replies', 'yardstick', 'best'] WHERE state = 'ended';
"""
# as judging.0006 tells them apart; a correction by hand was the person's own
TOOLS = """
    DELETE FROM memory_evidence AS evidence USING conversations_turn AS turn
    WHERE turn.id = evidence.turn_id
      AND jsonb_path_exists(COALESCE(turn.next_state, '[]'), '$[*] ? (@.role != "user")')
      AND NOT EXISTS (
          SELECT FROM judging_hint AS hint JOIN judging_judgement AS judgement ON judgement.id = hint.judgement_id
          WHERE judgement.turn_id = turn.id AND hint.by_user)
      AND NOT EXISTS (
          SELECT FROM conversations_feedback AS feedback WHERE feedback.turn_id = turn.id AND feedback.correction <> '');
"""


def bury(apps: Any, schema_editor: Any) -> None:
    """Let tombstones keep marks, as `memory.services.entries.bury` writes them."""
    del schema_editor

    def mark(text: str) -> str:
        return salted_hmac("attune.memory.tombstone", text, algorithm="sha256").hexdigest()

    preferences = apps.get_model("memory", "Preference").objects
    for row in preferences.filter(state="deleted").only("fingerprint", "topics").iterator(chunk_size=500):
        preferences.filter(pk=row.pk).update(
            fingerprint=mark(row.fingerprint), buried=[mark(topic) for topic in row.topics], topics=[]
        )


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0005_pinned_is_told"),
        ("judging", "0006_whose_words"),
        ("conversations", "0016_paused_tenants"),
    ]

    operations = [
        migrations.AddField(
            model_name="preference",
            name="buried",
            field=ArrayField(
                base_field=models.CharField(max_length=64),
                db_default=[],
                default=list,
                help_text="Marks of a tombstone's topics, which cannot be read.",
                size=None,
            ),
        ),
        migrations.RunSQL(sql=TOOLS, reverse_sql=migrations.RunSQL.noop),
        migrations.RunSQL(sql=LESSONS, reverse_sql=migrations.RunSQL.noop),
        migrations.RunPython(bury, migrations.RunPython.noop),
        # what is pending for the rows that were just changed stands in the way of the constraints
        migrations.RunSQL(sql="SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="preference", name="preference_deleted_has_no_words"),
        migrations.AlterField(
            model_name="preference",
            name="fingerprint",
            field=models.CharField(
                help_text="SHA-256 of what is compared: word stems in order; a mark of that in a tombstone.",
                max_length=64,
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "deleted"), _negated=True),
                    models.Q(("own_words", ""), ("pinned", False), ("topics", [])),
                    _connector="OR",
                ),
                name="preference_deleted_has_no_words",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(("state", "deleted"), ("buried", []), _connector="OR"),
                name="preference_marked_once_deleted",
            ),
        ),
        migrations.AddConstraint(
            model_name="lesson",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "ended"), _negated=True),
                    models.Q(("figures__has_key", "replies"), _negated=True),
                    _connector="OR",
                ),
                name="lesson_ended_keeps_no_replies",
            ),
        ),
    ]
