"""How much a deletion would take, as far as a page counts it:
what a page costs does not grow with what would go."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.conversations.models import Turn
from apps.governance.erasure.lineage import Known, known_of
from apps.governance.erasure.subjects import Meant, consumed_by_version
from apps.governance.models import Subject

MOST_COUNTED = 2_000
"""Rows of a kind: whoever is asked whether all of them may go needs no larger number to
know that they are many."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows there are, counted up to `MOST_COUNTED`."""

    number: int
    is_more: bool = False
    """Whether there are more than were counted."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What a deletion would take: of the oldest `MOST_COUNTED` sessions, and of as many of their turns."""

    sessions: Counted
    turns: Counted
    """Of the sessions that were counted; of everything, of all of them."""
    preferences: Counted
    known: list[Known]
    """What versions learned from the turns that were counted."""

    @property
    def is_part(self) -> bool:
        """Whether `known` is of a part of the turns only."""
        return self.sessions.is_more or self.turns.is_more


def counted(rows: QuerySet[Any]) -> Counted:
    """Count rows, one more than `MOST_COUNTED` at most."""
    found = rows.values("pk")[: MOST_COUNTED + 1].count()
    return Counted(min(found, MOST_COUNTED), found > MOST_COUNTED)


def extent_of(meant: Meant) -> Extent:
    """Return how much a deletion would take. Must run in the tenant's scope."""
    turns = _oldest_turns(meant)
    return Extent(
        sessions=counted(meant.sessions()),
        turns=counted(turns),
        preferences=counted(meant.preferences()),
        # of the oldest sessions, of everything the oldest turns:
        # what learned later was mostly built on what learned from these, and is named with it
        known=known_of(consumed_by_version(turns[:MOST_COUNTED])),
    )


def _oldest_turns(meant: Meant) -> QuerySet[Turn]:
    if meant.subject == Subject.EVERYTHING:
        return Turn.objects.order_by("created_at")
    oldest = meant.sessions().order_by(*meant.oldest_first()).values("pk")[:MOST_COUNTED]
    return Turn.objects.filter(session__in=oldest)
