"""What nothing rests on any more is deleted for good, unless somebody pinned it."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from apps.conversations.models import Turn
from apps.memory.lessons import end_resting_on
from apps.memory.models import Evidence, Preference, PreferenceState
from apps.memory.people import Person, lock_all
from apps.memory.selectors import told_in_words_of, with_words
from apps.memory.services.entries import FORGOTTEN, revive
from kernel.locks import locked

_BATCH = 500


def words_go(turns: QuerySet[Turn], *, of: Iterable[tuple[Any, ...]] = ()) -> None:
    """Make ready for turns to go with what they said, in the transaction in which they do.

    Locks the people whose wishes rest on them (and `of` more, whose wishes go next), and ends the lessons that
    were taught in their words. Before any preference is locked: whoever forgets one by hand takes its person,
    then its lesson, then it, and then what it rests on.
    """
    said = Evidence.objects.filter(turn__in=turns)
    people = said.values_list(*(f"preference__{name}" for name in ("policy_id", "user_id", "end_user_id")))
    lock_all({Person(*one) for one in (*of, *people.distinct())})
    end_resting_on(list(told_in_words_of(turns).values_list("pk", flat=True)), FORGOTTEN)


def forget_groundless(*, among: Collection[uuid.UUID] | None = None) -> int:
    """Delete the preferences in scope (or `among` some) whose sessions are gone and that
    nobody typed; return how many.

    No prompt was told of them since the sessions went. What they had superseded holds again, as if they had
    never been said. Tombstones go when their turns are gone.
    """
    grounds = Evidence.objects.filter(preference=OuterRef("pk"))
    asked = Preference.objects.all() if among is None else Preference.objects.filter(pk__in=among)
    groundless = asked.filter(~Exists(grounds), own_words="")
    with transaction.atomic():
        found = list(
            groundless.order_by("pk").values_list("pk", "policy_id", "user_id", "end_user_id")[:_BATCH]
        )
        # whoever remembers may have found one of them, and give it ground again
        lock_all({Person(*whose) for _, *whose in found})
        end_resting_on([pk for pk, *_ in found], FORGOTTEN)
        still = groundless.filter(pk__in=[pk for pk, *_ in found])
        rows = list(locked(still, skip_locked=True, to_delete=True))
        for row in rows:
            if row.state != PreferenceState.DELETED:
                for other in locked(Preference.objects.filter(superseded_by=row)):
                    revive(other, "what replaced it was forgotten")
        Preference.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def keep_pinned(turns: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Let pinned preferences that rest on nothing but these turns have their words for their own.

    For turns that go because they are old, before they go, in the same transaction: whoever pins one at this
    moment waits, and finds it either kept or without ground. Returns the others, which rest on nothing once
    the turns are gone.
    """
    elsewhere = Evidence.objects.filter(preference=OuterRef("pk")).exclude(turn__in=turns)
    going = Preference.objects.filter(
        ~Exists(elsewhere),
        Exists(Evidence.objects.filter(preference=OuterRef("pk"), turn__in=turns)),
        own_words="",
    )
    lock_all({Person(*one) for one in going.values_list("policy_id", "user_id", "end_user_id")})
    for row in with_words(going.filter(pinned=True)):
        Preference.objects.filter(pk=row.pk).update(own_words=row.words)
    return list(going.values_list("pk", flat=True))
