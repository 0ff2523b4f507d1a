"""Preferences, what they rest on, and the calls by which the gateway learns of them with its look-up."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import kernel.ids
from kernel.rls import protect

# What a prompt may be told of a person, the strongest first: what is pinned, then by evidence that halves in a month.
# What a person typed weighs as three complaints. What nothing rests on any more is not told.
MEMORY = """
CREATE FUNCTION attune_memory(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    before text := COALESCE(current_setting('attune.tenant', true), '');
    whose uuid := asked->>'policy';
    person uuid := asked->>'end_user_id';
    is_on boolean := true;
    budget int;
    entries jsonb;
BEGIN
    PERFORM set_config('attune.tenant', asked->>'tenant', true);
    SELECT s.in_prompt, s.budget_tokens INTO is_on, budget FROM memory_memorysetting s WHERE s.policy_id = whose;
    is_on := COALESCE(is_on, true);
    IF asked->>'end_user' IS NOT NULL THEN
        SELECT e.id INTO person FROM accounts_enduser e
        WHERE e.tenant_id = (asked->>'tenant')::uuid AND e.external_id = asked->>'end_user';
    END IF;
    IF is_on AND (asked->>'end_user' IS NULL OR person IS NOT NULL) THEN
        SELECT jsonb_agg(jsonb_build_object('id', r.id, 'revision', r.revision, 'words', r.words) ORDER BY r.place)
        INTO entries
        FROM (
            SELECT p.id, p.revision, COALESCE(NULLIF(p.own_words, ''), e.words) AS words,
                row_number() OVER (ORDER BY p.pinned DESC,
                    (e.turns + CASE WHEN p.own_words = '' THEN 0 ELSE 3 END) * exp(-ln(2.0) / 30 * EXTRACT(epoch FROM
                        clock_timestamp() - GREATEST(e.last, CASE WHEN e.turns = 0 OR p.own_words <> ''
                            THEN p.created_at END))::float8 / 86400) DESC,
                    p.id) AS place
            FROM memory_preference p
            CROSS JOIN LATERAL (
                SELECT count(*) AS turns, count(DISTINCT t.session_id) AS sessions, max(v.created_at) AS last,
                    (array_agg(v.words ORDER BY v.created_at, v.id))[1] AS words
                FROM memory_evidence v JOIN conversations_turn t ON t.id = v.turn_id
                WHERE v.preference_id = p.id) e
            WHERE p.tenant_id = (asked->>'tenant')::uuid AND p.policy_id = whose AND p.state = 'active'
                AND p.user_id = (asked->>'user')::uuid AND p.end_user_id IS NOT DISTINCT FROM person
                AND COALESCE(NULLIF(p.own_words, ''), e.words) <> ''
                AND (p.general OR p.pinned OR p.own_words <> '' OR e.sessions >= 2)
            ORDER BY place LIMIT 32) r;
    END IF;
    PERFORM set_config('attune.tenant', before, true);
    RETURN jsonb_build_object('on', is_on, 'budget', budget, 'entries', COALESCE(entries, '[]'::jsonb));
END $$;
"""

# The gateway's look-up with what the prompt may be told: still one call.
RECALL = """
CREATE FUNCTION attune_recall(asked jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
    answer jsonb := attune_look_up(asked);
BEGIN
    IF jsonb_typeof(answer->'policy') = 'object' AND (asked->>'recall')::boolean THEN
        answer := answer || jsonb_build_object('memory', attune_memory(jsonb_build_object(
            'tenant', answer->'key'->'tenant_id', 'user', answer->'key'->'user_id',
            'policy', answer->'policy'->'id', 'end_user', asked->'end_user')));
    END IF;
    RETURN answer;
END $$;
"""


def _made(signature: str, sql: str) -> migrations.RunSQL:
    rights = (
        f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC;"
        f"GRANT EXECUTE ON FUNCTION {signature} TO attune_app, attune_system;"
    )
    return migrations.RunSQL(sql=sql + rights, reverse_sql=f"DROP FUNCTION {signature}")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("adapters", "0002_gate_result_once_per_check"),
        ("conversations", "0004_what_a_prompt_told"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "Active"),
                            ("learned", "Learned"),
                            ("superseded", "Superseded"),
                            ("deleted", "Deleted"),
                        ],
                        default="active",
                        max_length=10,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[("hint", "Hint"), ("correction", "Correction"), ("typed", "Typed")],
                        max_length=10,
                    ),
                ),
                (
                    "own_words",
                    models.CharField(
                        blank=True,
                        help_text="What a person typed; empty: the words of the oldest evidence count.",
                        max_length=400,
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="SHA-256 of what is compared: word stems in order.", max_length=64
                    ),
                ),
                (
                    "topics",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=60),
                        default=list,
                        help_text="topic:pole of what it speaks about.",
                        size=None,
                    ),
                ),
                (
                    "general",
                    models.BooleanField(
                        default=True,
                        help_text="Off: it may be about one answer only, and is told once two sessions said it.",
                    ),
                ),
                (
                    "pinned",
                    models.BooleanField(
                        default=False, help_text="Comes first, and nothing that is overheard replaces it."
                    ),
                ),
                ("revision", models.PositiveIntegerField(default=1, help_text="Grows with every edit.")),
                ("reason", models.CharField(blank=True, help_text="Why it is in its state.", max_length=200)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "end_user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferences",
                        to="accounts.enduser",
                    ),
                ),
                (
                    "held_by",
                    models.ForeignKey(
                        help_text="The version that showed that it need not be told.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="adapters.adapterversion",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferences",
                        to="adapters.policy",
                    ),
                ),
                (
                    "superseded_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="supersedes",
                        to="memory.preference",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "words",
                    models.CharField(
                        blank=True, help_text="Empty once the preference is deleted.", max_length=400
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.turn"
                    ),
                ),
                (
                    "preference",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evidence",
                        to="memory.preference",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "evidence",
            },
        ),
        migrations.CreateModel(
            name="MemorySetting",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "in_prompt",
                    models.BooleanField(default=True, help_text="Tell the model what people asked for."),
                ),
                (
                    "budget_tokens",
                    models.PositiveIntegerField(
                        help_text="For entries in a prompt; empty: the platform's.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(4096)],
                    ),
                ),
                (
                    "shadow",
                    models.BooleanField(
                        default=True, help_text="Let the weights take preferences over in quiet minutes."
                    ),
                ),
                (
                    "shadow_tokens_per_day",
                    models.PositiveIntegerField(
                        help_text="Tokens that shadow rollouts may write in 24 hours; empty: the platform's.",
                        null=True,
                    ),
                ),
                (
                    "policy",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_setting",
                        to="adapters.policy",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("budget_tokens__isnull", True), ("budget_tokens__lte", 4096), _connector="OR"
                        ),
                        name="memory_budget_bounded",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="preference",
            index=models.Index(
                condition=models.Q(("state", "active")),
                fields=["policy", "user", "end_user"],
                name="preference_active",
            ),
        ),
        migrations.AddIndex(
            model_name="preference",
            index=models.Index(fields=["tenant", "-created_at"], name="preference_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ("active", "learned", "superseded"))),
                fields=("policy", "user", "end_user", "fingerprint"),
                name="preference_once_per_person",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["active", "learned", "superseded", "deleted"])),
                name="preference_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["hint", "correction", "typed"])),
                name="preference_source_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "deleted"), _negated=True),
                    models.Q(("own_words", ""), ("pinned", False)),
                    _connector="OR",
                ),
                name="preference_deleted_has_no_words",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(("superseded_by__isnull", True), ("state", "superseded"), _connector="OR"),
                name="preference_superseded_by_what",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("superseded_by__isnull", True),
                    models.Q(("superseded_by", models.F("id")), _negated=True),
                    _connector="OR",
                ),
                name="preference_not_superseded_by_itself",
            ),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.UniqueConstraint(fields=("preference", "turn"), name="evidence_once_per_turn"),
        ),
        protect("memory_preference"),
        protect("memory_evidence"),
        protect("memory_memorysetting"),
        _made("attune_memory(jsonb)", MEMORY),
        _made("attune_recall(jsonb)", RECALL),
    ]
