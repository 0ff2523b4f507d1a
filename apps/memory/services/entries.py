"""What every change of preferences has in common: finding the same one, settling contradictions, bounding how many."""

from collections.abc import Iterable

from apps.memory.models import KEPT, Preference, PreferenceState, Source
from apps.memory.people import Person
from apps.memory.sameness import Wish, is_same, says_more
from apps.memory.selectors import with_words
from apps.memory.topics import excludes, is_general
from kernel.locks import locked

MOST = 100
"""Preferences of one person that are kept; over it the weakest that nobody typed or pinned goes."""
_HOLDS = (PreferenceState.ACTIVE, PreferenceState.LEARNED)


def same_as(person: Person, wish: Wish) -> Preference | None:
    """Return the person's kept preference that says the same, if there is one: word for word, or nearly."""
    rows = Preference.objects.filter(**person.rows(), state__in=KEPT)
    exact = rows.filter(fingerprint=wish.compared.fingerprint).first()
    if exact is not None:
        return exact
    for row in with_words(rows).exclude(words="").order_by("id"):
        if is_same(Wish.of(row.words), wish):
            found: Preference = row
            return found
    return None


def says_already(person: Person, wish: Wish) -> Preference | None:
    """Return the person's preference that holds and says all of a wish and more, if there is one."""
    for row in with_words(Preference.objects.filter(**person.rows(), state__in=_HOLDS)).order_by("id"):
        if says_more(Wish.of(row.words), wish):
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
    """Let the newest of a person's contradicting preferences hold; what was pinned yields only to what is done by hand.

    Of two that say the same, one of them more exactly, the newer one that says more holds alone, unless the other one was
    typed or pinned.
    """
    holding = Preference.objects.filter(**person.rows(), state__in=_HOLDS)
    others = [row for row in locked(holding) if row.pk != newest.pk]
    rivals = [row for row in others if excludes(row.topics, newest.topics)]
    kept = next((row for row in rivals if row.pinned), None)
    if kept is not None and not by_hand:
        supersede([newest], by=kept, reason="a pinned preference says otherwise")
        return
    supersede(rivals, by=newest, reason="the opposite was said later")
    words = dict(with_words(holding).values_list("pk", "words"))
    if newest.pk not in words:
        return
    wish = Wish.of(words[newest.pk])
    overheard = [row for row in others if row.pk in words and not (row.pinned or row.own_words)]
    said = [row for row in overheard if says_more(wish, Wish.of(words[row.pk]))]
    supersede(said, by=newest, reason="it was said more exactly later")


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
