"""Read preferences: their words, their evidence, and what they save."""

import uuid
from typing import Any

from django.db.models import Case, CharField, Count, F, Max, Min, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Greatest

from apps.conversations.models import Turn, TurnKind
from apps.memory.models import KEPT, Evidence, MemorySetting, Preference
from apps.memory.people import Person
from apps.memory.prompt import cost_of


def with_words(rows: QuerySet[Preference]) -> QuerySet[Any]:
    """Add `words` (what is told), `evidence_count`, `first_seen` and `last_seen` to preferences.

    Without words of its own a preference has those of its oldest evidence; without either it is told to nobody.
    """
    evidence = Evidence.objects.filter(preference=OuterRef("pk")).order_by("created_at", "id")
    overheard = Subquery(evidence.values("words")[:1])
    return rows.annotate(
        words=Case(
            When(own_words="", then=Coalesce(overheard, Value(""))),
            default=F("own_words"),
            output_field=CharField(),
        ),
        evidence_count=Count("evidence", distinct=True),
        first_seen=Coalesce(Min("evidence__created_at"), F("created_at")),
        last_seen=Coalesce(Greatest(Max("evidence__created_at"), F("created_at")), F("created_at")),
    )


def preferences_of(person: Person, *, deleted: bool = False) -> QuerySet[Any]:
    """Return a person's preferences that rest on something, newest first."""
    rows = Preference.objects.filter(**person.rows())
    rows = rows if deleted else rows.filter(state__in=KEPT)
    return with_words(rows).exclude(words="").order_by("-id")


def setting_of(policy_id: uuid.UUID) -> MemorySetting:
    """Return how a policy uses memory; an unsaved row with the defaults where nobody set anything."""
    found = MemorySetting.objects.filter(policy_id=policy_id).first()
    return found or MemorySetting(policy_id=policy_id)


def tokens_saved(row: Any) -> int:
    """Return how many prompt tokens a learned preference (with its words) has saved: its cost for each request since."""
    if row.held_since is None:
        return 0
    requests = Turn.objects.filter(
        policy_id=row.policy_id,
        kind=TurnKind.LIVE,
        session__user_id=row.user_id,
        session__end_user_id=row.end_user_id,
        created_at__gte=row.held_since,
    ).count()
    return requests * cost_of(row.words)
