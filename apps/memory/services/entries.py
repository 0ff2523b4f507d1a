"""What every change of preferences has in common: finding the same one, settling contradictions, bounding how many."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.memory.models import KEPT, Preference, PreferenceState, Source
from apps.memory.people import Person
from apps.memory.selectors import with_words
from apps.memory.text import Compared, compare, is_near
from apps.memory.topics import excludes, is_general, topics_of
from kernel.locks import locked

MOST = 100
"""Preferences of one person that are kept; over it the weakest that nobody typed or pinned goes."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A preference's words as they are compared and filed."""

    words: str
    compared: Compared
    topics: tuple[str, ...]

    @classmethod
    def of(cls, words: str) -> "Wish":
        """Return what `words` say."""
        return cls(words, compare(words), tuple(topics_of(words)))


def same_as(person: Person, wish: Wish) -> Preference | None:
    """Return the person's kept preference that says the same, if there is one: word for word, or nearly."""
    rows = Preference.objects.filter(**person.rows(), state__in=KEPT)
    exact = rows.filter(fingerprint=wish.compared.fingerprint).first()
    if exact is not None:
        return exact
    for row in with_words(rows).exclude(words="").order_by("id"):
        if set(row.topics) == set(wish.topics) and is_near(compare(row.words), wish.compared):
            found: Preference = row
            return found
    return None


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


def settle(person: Person, newest: Preference, *, by_hand: bool) -> None:
    """Let the newest of a person's contradicting preferences hold; what was pinned yields only to what is done by hand."""
    rivals = [
        row
        for row in locked(
            Preference.objects.filter(
                **person.rows(), state__in=(PreferenceState.ACTIVE, PreferenceState.LEARNED)
            )
        )
        if row.pk != newest.pk and excludes(row.topics, newest.topics)
    ]
    kept = next((row for row in rivals if row.pinned), None)
    if kept is not None and not by_hand:
        supersede([newest], by=kept, reason="a pinned preference says otherwise")
        return
    supersede(rivals, by=newest, reason="the opposite was said later")


def supersede(rows: Iterable[Preference], *, by: Preference, reason: str) -> None:
    """Take preferences out of the prompt because another holds."""
    for row in rows:
        row.state, row.superseded_by, row.reason, row.pinned = PreferenceState.SUPERSEDED, by, reason, False
        row.held_by = row.held_since = None
        row.save()


def revive(row: Preference, reason: str = "") -> None:
    """Tell a preference again."""
    row.state, row.superseded_by, row.reason = PreferenceState.ACTIVE, None, reason
    row.held_by = row.held_since = None
    row.save(update_fields=["state", "superseded_by", "held_by", "held_since", "reason", "changed_at"])


def bury(row: Preference, reason: str) -> None:
    """Delete a preference: its words are gone, the tombstone keeps the same turns from bringing it back."""
    row.evidence.update(words="")
    row.state, row.own_words, row.pinned = PreferenceState.DELETED, "", False
    row.superseded_by, row.reason = None, reason
    row.held_by = row.held_since = None
    row.save()


def make_room(person: Person) -> None:
    """Keep at most `MOST` preferences of a person."""
    rows = Preference.objects.filter(**person.rows(), state__in=KEPT)
    surplus = rows.count() - MOST
    if surplus > 0:
        weakest = with_words(rows.filter(pinned=False, own_words="")).order_by(
            "evidence_count", "last_seen", "id"
        )
        for row in weakest[:surplus]:
            bury(row, f"more than {MOST} preferences")
