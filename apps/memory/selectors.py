"""Read preferences: their words, their evidence, and what they save."""

import uuid
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest

from apps.conversations.models import Turn, TurnKind
from apps.memory.models import HOLDING, KEPT, Evidence, MemorySetting, Preference
from apps.memory.people import Person
from apps.memory.prompt import cost_of


def with_words(rows: QuerySet[Preference]) -> QuerySet[Any]:
    """Add `words` (what is told), `evidence_count`, `first_seen` and `last_seen` to preferences.

    Without words of its own a preference has those of its oldest evidence; without either it is told to
    nobody.
    """
    evidence = Evidence.objects.filter(preference=OuterRef("pk"))
    overheard = Subquery(evidence.order_by("created_at", "id").values("words")[:1])
    # subqueries, not a join: they are run for the rows of a page alone
    said = evidence.order_by().values("preference")
    first = Subquery(said.annotate(at=Min("created_at")).values("at"))
    last = Subquery(said.annotate(at=Max("created_at")).values("at"))
    return rows.annotate(
        words=Case(
            When(own_words="", then=Coalesce(overheard, Value(""))),
            default=F("own_words"),
            output_field=CharField(),
        ),
        evidence_count=_counted(said.annotate(n=Count("pk"))),
        first_seen=Coalesce(first, F("created_at")),
        last_seen=Coalesce(Greatest(last, F("created_at")), F("created_at")),
    )


def with_session_counts(rows: QuerySet[Preference]) -> QuerySet[Any]:
    """Add `session_count`: in how many sessions a preference was said."""
    said = Evidence.objects.filter(preference=OuterRef("pk")).order_by().values("preference")
    return rows.annotate(session_count=_counted(said.annotate(n=Count("turn__session", distinct=True))))


def wanted_of(policy_id: uuid.UUID) -> QuerySet[Any]:
    """Return what people want of a policy, told or learned already, with the words that say it.

    What nobody typed has words as long as a turn that said it is there; what may be about one answer only
    counts once two sessions said it.
    """
    held = Preference.objects.filter(policy_id=policy_id, state__in=HOLDING)
    said = Q(general=True) | Q(pinned=True) | ~Q(own_words="") | Q(session_count__gte=2)
    return with_session_counts(with_words(held)).exclude(words="").filter(said)


def told_in_words_of(turns: QuerySet[Turn]) -> QuerySet[Preference]:
    """Return the preferences that are told in what one of these turns said."""
    said = Evidence.objects.filter(turn__in=turns).values("preference_id")
    oldest = Evidence.objects.filter(preference=OuterRef("pk")).order_by("created_at", "id")
    rows = Preference.objects.filter(pk__in=said, own_words="")
    return rows.annotate(said_in=Subquery(oldest.values("turn_id")[:1])).filter(said_in__in=turns)


def _counted(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows.values("n"), output_field=IntegerField()), Value(0))


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
    """Return how many prompt tokens a learned preference (with its words) has saved:
    its cost for each request since."""
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
