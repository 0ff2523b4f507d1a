"""From what was said of a turn to the preferences that the next prompt is told."""

import logging
import uuid

from django.db import transaction

from apps.conversations.models import Feedback, Turn, TurnKind, TurnState
from apps.judging.selectors import verdict
from apps.memory.lessons import hold
from apps.memory.models import Evidence, Preference, PreferenceState, Source
from apps.memory.people import Person
from apps.memory.sameness import Wish
from apps.memory.services.entries import create, make_room, mark, revive
from apps.memory.services.wishes import Wishes
from apps.memory.text import overheard

logger = logging.getLogger(__name__)

MOST_EVIDENCE = 50
"""Turns that are counted for one preference."""


def remember(*, turn_id: uuid.UUID) -> list[Preference]:
    """Keep what the verdict on a turn says about its person's wishes; return the preferences it speaks for.

    Corrections by hand count and accepted hints that rest on the person's own words, sentence by sentence: what a tool
    returned is nobody's wish. Safe to call again and from several places at once: a turn speaks for a preference
    once. What was deleted stays deleted until another turn says it.
    """
    with transaction.atomic():
        # the turn before the person, as a deletion takes them;
        # what rests on it is refused at the commit once it is gone
        turn = (
            Turn.objects.select_for_update(of=("self",), no_key=True)
            .select_related("session")
            .only(
                "id",
                "tenant_id",
                "kind",
                "side",
                "state",
                "policy_id",
                "session__user_id",
                "session__end_user_id",
            )
            .filter(id=turn_id)
            .first()
        )
        if turn is None or turn.kind != TurnKind.LIVE or turn.side or turn.state != TurnState.COMPLETE:
            return []
        said = verdict(turn.id)
        if said is None or not said.wishes:
            return []
        person = Person(turn.policy_id, turn.session.user_id, turn.session.end_user_id)
        person.lock()
        hold(turn.policy_id)
        by_hand = set(Feedback.objects.filter(turn=turn).values_list("correction", flat=True))
        wishes = Wishes(person)
        found: list[Preference] = []
        for text in said.wishes:
            corrects = text in {" ".join(words.split()) for words in by_hand}
            sentences, reasons = overheard(text)
            for reason in reasons:
                logger.info("of turn %s a hint is not kept: %s", turn.id, reason)
            for words in sentences:
                row = _heard(wishes, turn, Wish.of(words), Source.CORRECTION if corrects else Source.HINT)
                if row is not None:
                    found.append(row)
        make_room(person)
    return found


def _heard(wishes: Wishes, turn: Turn, wish: Wish, source: Source) -> Preference | None:
    """Count a turn for a preference; None where that was done before, or what it said was deleted."""
    mine = Evidence.objects.filter(turn=turn)
    deleted = mine.filter(preference__state=PreferenceState.DELETED)
    if deleted.filter(preference__fingerprint=mark(wish.compared.fingerprint)).exists():
        return None
    # it may have counted for one in other words, or for one that said more
    topics = [mark(topic) for topic in wish.topics]
    if topics and deleted.filter(preference__buried__contains=topics).exists():
        return None
    row, words = wishes.same_as(wish), wish.words
    if (row is None or row.state == PreferenceState.SUPERSEDED) and (more := wishes.says_already(wish)):
        row, words = more, ""  # what says less is not what is told, should all else that it rests on go
    if row is not None and mine.filter(preference=row).exists():
        return None
    if row is None:
        row = create(wishes.person, wish, source=source, typed=False)
    elif row.state == PreferenceState.LEARNED:
        revive(row, "asked for again", asked_again=True)
    elif row.state == PreferenceState.SUPERSEDED:
        revive(row, asked_again=True)
    grounds = [(turn.pk, words)]
    if words and not row.evidence.exclude(words="").exists():
        # the oldest one has the words that are told: those without any come after it
        grounds += row.evidence.order_by("created_at", "id").values_list("turn_id", "words")
        row.evidence.all().delete()
    if row.evidence.count() < MOST_EVIDENCE:
        for turn_id, said in grounds:
            Evidence.objects.create(tenant_id=turn.tenant_id, preference=row, turn_id=turn_id, words=said)
    wishes.put(row, wishes.words_of(row) or words)
    wishes.settle(row, by_hand=False)
    return row
