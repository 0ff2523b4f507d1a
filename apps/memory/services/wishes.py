"""A person's preferences as one change of them finds them: read once, each read as a wish once."""

import uuid
from collections.abc import Iterable
from functools import cached_property

from apps.memory.models import HOLDING, KEPT, Preference, PreferenceState
from apps.memory.people import Person
from apps.memory.sameness import Wish, is_same, says_more
from apps.memory.selectors import with_words
from apps.memory.topics import excludes
from kernel.locks import locked


class Wishes:
    """What is kept of a person, for a caller who has locked the person and says what it writes (`put`).

    Nothing is read before it is asked for.
    """

    def __init__(self, person: Person) -> None:
        self.person = person
        self._words: dict[uuid.UUID, str] = {}
        self._read: dict[str, Wish] = {}

    @cached_property
    def _rows(self) -> dict[uuid.UUID, Preference]:
        """The kept preferences, oldest first."""
        rows = with_words(Preference.objects.filter(**self.person.rows(), state__in=KEPT))
        found = {row.pk: row for row in rows.order_by("id")}
        self._words = {pk: row.words for pk, row in found.items()}
        return found

    def same_as(self, wish: Wish) -> Preference | None:
        """Return the kept preference that says the same, if there is one: word for word, or nearly."""
        rows = self._rows.values()
        exact = next((row for row in rows if row.fingerprint == wish.compared.fingerprint), None)
        if exact is not None:
            return exact
        return next((row for row in rows if self._words[row.pk] and is_same(self._wish_of(row), wish)), None)

    def says_already(self, wish: Wish) -> Preference | None:
        """Return the preference that holds and says all of a wish and more, if there is one."""
        holding = (row for row in self._rows.values() if row.state in HOLDING)
        return next((row for row in holding if says_more(self._wish_of(row), wish)), None)

    def put(self, row: Preference, words: str) -> None:
        """Note that a preference was written, and what it is told by now."""
        self._rows[row.pk] = row
        self._words[row.pk] = words

    def words_of(self, row: Preference) -> str:
        """Return what a kept preference is told by; "" where nothing is left of it."""
        return self._words[row.pk] if row.pk in self._rows else ""

    def settle(self, newest: Preference, *, by_hand: bool) -> None:
        """Let the newest of contradicting preferences hold;
        what was pinned yields only to what is done by hand.

        Of two that say the same, one of them more exactly, the newer one that says more holds alone, unless
        the other one was typed or pinned.
        """
        # as they are now: what the weights hold is taken out of the prompt by whoever holds
        # the rows, not the person
        holding = locked(Preference.objects.filter(**self.person.rows(), state__in=HOLDING))
        others = [row for row in holding if row.pk != newest.pk]
        for row in (*others, newest):
            self.put(row, self.words_of(row))
        rivals = [row for row in others if excludes(row.topics, newest.topics)]
        kept = next((row for row in rivals if row.pinned), None)
        if kept is not None and not by_hand:
            supersede([newest], by=kept, reason="a pinned preference says otherwise")
            return
        supersede(rivals, by=newest, reason="the opposite was said later")
        wish = self._wish_of(newest)
        overheard = [row for row in others if row.state in HOLDING and not (row.pinned or row.own_words)]
        said = [row for row in overheard if says_more(wish, self._wish_of(row))]
        supersede(said, by=newest, reason="it was said more exactly later")

    def _wish_of(self, row: Preference) -> Wish:
        words = self.words_of(row)
        if words not in self._read:
            self._read[words] = Wish.of(words)
        return self._read[words]


def supersede(rows: Iterable[Preference], *, by: Preference, reason: str) -> None:
    """Take preferences out of the prompt because another holds."""
    for row in rows:
        row.state, row.superseded_by, row.reason, row.pinned = PreferenceState.SUPERSEDED, by, reason, False
        row.held_by = row.held_since = None
        row.save()
