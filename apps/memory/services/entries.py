"""What every change of preferences has in common:
making, reviving and deleting one, and bounding how many."""

from django.utils.crypto import salted_hmac

from apps.memory.lessons import end_resting_on
from apps.memory.models import KEPT, Preference, PreferenceState, Source
from apps.memory.people import Person
from apps.memory.sameness import Wish
from apps.memory.selectors import with_words
from apps.memory.topics import is_general

MOST = 100
"""Preferences of one person that are kept; over it the weakest that nobody typed or pinned goes."""
FORGOTTEN = "what it taught was forgotten"


def create(person: Person, wish: Wish, *, source: Source, typed: bool, pinned: bool = False) -> Preference:
    """Write a new active preference of a person whose rows the caller has locked."""
    return Preference.objects.create(
        **person.columns(),
        source=source,
        own_words=wish.words if typed else "",
        fingerprint=wish.compared.fingerprint,
        topics=list(wish.topics),
        general=typed or is_general(wish.words),
        pinned=pinned,
    )


def revive(row: Preference, reason: str = "", *, asked_again: bool = False) -> None:
    """Tell a preference again, pinned or not as the row says.

    `asked_again`: a person says that what answers does not do it. What was measured of these words until then
    counts for nothing: they begin a lesson of their own.
    """
    row.state, row.superseded_by, row.reason = PreferenceState.ACTIVE, None, reason
    row.held_by = row.held_since = None
    row.revision += asked_again
    row.save(
        update_fields=[
            *("state", "superseded_by", "held_by", "held_since", "reason", "pinned", "revision", "changed_at")
        ]
    )


def bury(row: Preference, reason: str) -> None:
    """Delete a preference: its words are gone, the tombstone keeps the same turns from bringing it back."""
    row.evidence.update(words="")
    row.buried, row.topics = [mark(topic) for topic in row.topics], []  # a topic may be a name
    row.fingerprint = mark(row.fingerprint)
    row.state, row.own_words, row.pinned = PreferenceState.DELETED, "", False
    row.superseded_by, row.reason = None, reason
    row.held_by = row.held_since = None
    row.save()


def mark(text: str) -> str:
    """Return what a tombstone keeps of a text: it is known again, and cannot be guessed without the platform's key."""
    return salted_hmac("attune.memory.tombstone", text, algorithm="sha256").hexdigest()


def make_room(person: Person) -> None:
    """Keep at most `MOST` preferences of a person, whom the caller has locked."""
    rows = Preference.objects.filter(**person.rows(), state__in=KEPT)
    surplus = rows.count() - MOST
    if surplus > 0:
        weakest = with_words(rows.filter(pinned=False, own_words="")).order_by(
            "evidence_count", "last_seen", "id"
        )
        going = list(weakest[:surplus])
        end_resting_on([row.pk for row in going], FORGOTTEN)
        for row in going:
            bury(row, f"more than {MOST} preferences")
