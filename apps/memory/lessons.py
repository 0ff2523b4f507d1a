"""What a policy's weights should hold: all that its one person wants, told or learned already."""

import datetime as dt
import hashlib
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import F, Func, JSONField, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Session, TurnKind
from apps.judging.eligibility import opt_outs
from apps.judging.models import PersonalData
from apps.judging.personal_data import kinds_in
from apps.judging.rules import rules_of
from apps.memory.models import Lesson, LessonState, Preference, PreferenceState
from apps.memory.people import Person
from apps.memory.selectors import wanted_of
from kernel.locks import locked

_SERVED = dt.timedelta(days=30)
_MOST = 12  # preferences in one lesson, the strongest
_OF_THE_WORDS = ("replies", "yardstick", "best")
"""Of a lesson's figures: the told teacher's replies, and what is nothing without them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that the weights should do without being told."""

    id: uuid.UUID
    revision: int
    words: str
    is_learned: bool
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """All that the one person of a policy wants."""

    person: Person
    wanted: tuple[Wanted, ...]

    @property
    def key(self) -> str:
        """Return what changes whenever something else is wanted."""
        named = sorted(f"{one.id}:{one.revision}" for one in self.wanted)
        return hashlib.sha256("\n".join(named).encode()).hexdigest()

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return what is wanted without its words, as rows keep it."""
        return [{"id": str(one.id), "revision": one.revision} for one in self.wanted]

    @property
    def hint(self) -> str:
        """Return it in one text, as a teacher is told."""
        return " ".join(one.words for one in self.wanted)

    @property
    def is_learned(self) -> bool:
        """Return whether nothing of it stands in prompts any more but what is pinned."""
        said = [one for one in self.wanted if not one.is_pinned]
        return bool(said) and all(one.is_learned for one in said)


def standing(policy: Policy) -> Standing | str:
    """Return what the one person of a policy wants, or why nothing can be taught.

    Weights are one for everybody that a policy serves: what one of several people wants stays in that one's
    prompts.
    """
    found = list(wanted_of(policy.pk).order_by("-pinned", "-last_seen", "id"))
    people = {Person(row.policy_id, row.user_id, row.end_user_id) for row in found}
    if not people:
        return "nobody wants anything"
    if len(people) > 1:
        return "several people want things of this policy: they are told, not taught"
    (person,) = people
    if _serves_others(policy, person):
        return "the policy serves other people too: what one wants is told, not taught"
    if opt_outs(policy.tenant_id, person.user_id, person.end_user_id, timezone.now()).exists():
        return "the person takes no part in training: what they want is told, not taught"
    if rules_of(policy).personal_data != PersonalData.OFF:
        found = [row for row in found if not kinds_in(row.words)]
    if not found:
        return "what is wanted holds personal data: it is told, not taught"
    wanted = tuple(
        Wanted(row.id, row.revision, row.words, row.state == PreferenceState.LEARNED, row.pinned)
        for row in found[:_MOST]
    )
    return Standing(person, tuple(sorted(wanted, key=lambda one: one.id)))


def still_stands(policy: Policy, stands: Standing) -> bool:
    """Return whether the same is wanted as when `stands` was read, word for word, and may be taught.

    Nobody takes it back until the caller's transaction ends: who deletes a wish, or the session that it rests
    on, waits.
    """
    stands.person.lock()
    now = standing(policy)
    if isinstance(now, str):
        return False
    return (now.person, now.entries, now.hint) == (stands.person, stands.entries, stands.hint)


def current_lesson(policy: Policy, stands: Standing) -> Lesson:
    """Return the lesson of what stands, made or reopened; any other one of the policy ends."""
    with transaction.atomic():
        stands.person.lock()
        others = Lesson.objects.filter(policy=policy).exclude(key=stands.key)
        end(others, "something else is wanted now")
        row, is_new = Lesson.objects.get_or_create(
            policy=policy,
            key=stands.key,
            defaults={
                "tenant_id": policy.tenant_id,
                "user_id": stands.person.user_id,
                "end_user_id": stands.person.end_user_id,
                "entries": stands.entries,
            },
        )
        lesson = Lesson.objects.select_for_update(of=("self",)).get(pk=row.pk)
        state = LessonState(lesson.state)
        if not stands.is_learned:
            if state in (LessonState.ENDED, LessonState.HELD):
                state = LessonState.TEACHING
                _begin_anew(lesson)
        elif is_new or state != LessonState.TEACHING:
            # what left the prompt while it was taught is taught on until no version is better
            state = LessonState.HELD
        if state != lesson.state:
            lesson.state, lesson.reason, lesson.without_gain = state, "", 0
            lesson.save()
    return lesson


def is_measured(lesson: Lesson) -> bool:
    """Return whether it is known what the next version of a lesson is held against."""
    return "best" in lesson.figures


def _begin_anew(lesson: Lesson) -> None:
    """Leave it to be measured what a reopened lesson begins at.

    Another version answers by now, perhaps, and the best of then is what that one's lineage had left behind:
    a version of today would be held against it. The yardstick is of the base and the same words, and stays
    where the lesson was not over.
    """
    lesson.figures.pop("best", None)
    lesson.best = lesson.best_score = None


def end_lessons(policy: Policy, reason: str) -> None:
    """End the policy's lesson where nothing stands any more."""
    with transaction.atomic():
        end(Lesson.objects.filter(policy=policy), reason)


def end_resting_on(preferences: Collection[uuid.UUID], reason: str) -> None:
    """End the lessons that teach one of these preferences: the words that it is told in go.

    In the caller's transaction, which has their people locked, so that no lesson of these words begins
    meanwhile, and none of the preferences.
    """
    named = {str(one) for one in preferences}
    policies = Preference.objects.filter(pk__in=preferences).values("policy_id")
    under_way = Lesson.objects.filter(policy_id__in=policies).exclude(state=LessonState.ENDED)
    resting = [
        pk
        for pk, entries in under_way.values_list("pk", "entries")
        if any(entry["id"] in named for entry in entries)
    ]
    if resting:
        end(Lesson.objects.filter(pk__in=resting), reason)


def hold(policy_id: uuid.UUID) -> None:
    """Lock the lesson of a policy that is under way, for who may end it once preferences are locked."""
    list(locked(Lesson.objects.filter(policy_id=policy_id).exclude(state=LessonState.ENDED)))


def end(lessons: QuerySet[Lesson], reason: str) -> None:
    """End those of some lessons that are not over, in the caller's transaction.

    What has ended keeps what versions measured, and nothing that was written to the words of the wishes: they
    stay with the preferences. Reopened, it is measured anew what it is measured by.
    """
    held = list(locked(lessons.exclude(state=LessonState.ENDED)).values_list("pk", flat=True))
    Lesson.objects.filter(pk__in=held).update(
        state=LessonState.ENDED,
        reason=reason[:300],
        figures=Func(
            F("figures"),
            Cast(Value(list(_OF_THE_WORDS)), ArrayField(TextField())),
            template="(%(expressions)s)",
            arg_joiner=" - ",
            output_field=JSONField(),
        ),
        changed_at=timezone.now(),
    )


def _serves_others(policy: Policy, person: Person) -> bool:
    mine = Q(user_id=person.user_id, end_user_id=person.end_user_id)
    if person.end_user_id is None:
        mine = Q(user_id=person.user_id, end_user__isnull=True)
    return (
        Session.objects.filter(policy=policy, kind=TurnKind.LIVE, last_turn_at__gte=timezone.now() - _SERVED)
        .exclude(mine)
        .exists()
    )
