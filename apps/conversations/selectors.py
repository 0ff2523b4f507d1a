"""Read sessions and turns."""

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.conversations.models import Session, Turn


def with_turn_counts(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Add `n_turns`, counted for the rows that are returned and for no other:
    a page costs the same in any table."""
    counted = (
        Turn.objects.filter(session=OuterRef("pk"))
        .order_by()
        .values("session")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return sessions.annotate(n_turns=Coalesce(Subquery(counted, output_field=IntegerField()), Value(0)))
