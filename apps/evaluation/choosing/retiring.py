"""What leaves the prompt since the weights do it, and what comes back: told again once they do not."""

import logging
import uuid

from django.db import transaction

from apps.adapters.models import AdapterVersion, Policy
from apps.evaluation.choosing.best import follow_pointer
from apps.evaluation.choosing.figures import Measured, holds
from apps.evaluation.choosing.yardstick import teacher_of
from apps.memory import services as memory
from apps.memory.lessons import Standing, is_measured
from apps.memory.models import Lesson, LessonState

logger = logging.getLogger(__name__)


def settle(policy: Policy, stands: Standing) -> None:
    """Take out of the prompt what the live version does without being told; may be done again at any time.

    Teaching goes on until no version is better: passing as often as the teacher on sixteen questions is
    enough to do without being told, and not the best that can be had. What answered when it was asked for takes
    nothing out, however it measures: the person has said that it does not do it.
    """
    if stands.is_learned:
        return
    with transaction.atomic():
        lesson = (
            Lesson.objects.select_for_update(of=("self",))
            .filter(policy=policy, key=stands.key, state__in=(LessonState.TEACHING, LessonState.PLATEAU))
            .first()
        )
        if lesson is None or not is_measured(lesson):
            return
        if follow_pointer(lesson):
            lesson.save()
        live = policy.live
        if live is None or lesson.best_id != live.pk or live.created_at < lesson.created_at:
            return
        teacher, best = teacher_of(lesson), Measured.from_json(lesson.figures["best"])
        if not holds(best, teacher.yardstick):
            return
        # held until the commit: whoever moves the pointer off this lineage afterwards finds what was taken out
        pointer = Policy.objects.select_for_update(of=("self",), no_key=True).values_list(
            "live_id", flat=True
        )
        if pointer.get(pk=policy.pk) != live.pk:
            return
        reason = (
            f"{best.passes} of {best.of} held-out replies pass untold, {teacher.yardstick.told.passes} told"
        )
        if not memory.retire(entries=stands.entries, version=live, reason=reason):
            return  # something else is wanted by now
        if lesson.state == LessonState.PLATEAU:
            lesson.state = LessonState.HELD
        lesson.reason = reason
        lesson.save(update_fields=["state", "reason", "changed_at"])
        logger.info("policy %s need not be told any more: %s", policy.pk, reason)


def look_at_pointer(*, policy_id: uuid.UUID) -> None:
    """Let the policy's lesson know that another version answers now; may be left out, or done again, at any time."""
    with transaction.atomic():
        lessons = Lesson.objects.select_for_update(of=("self",)).filter(policy_id=policy_id)
        lesson = lessons.exclude(state=LessonState.ENDED).first()
        if lesson is not None and is_measured(lesson) and follow_pointer(lesson):
            lesson.save()
            logger.info(
                "policy %s: the best of its lesson is %s now", policy_id, lesson.best or "the bare base"
            )


def tell_again(lesson: Lesson, now: Measured, version: AdapterVersion) -> None:
    """Tell the person's preferences again: a new version does without them no longer."""
    reason = f"version {version.number}: {now.passes} of {now.of} held-out replies pass untold"
    memory.bring_back(preference_ids=[uuid.UUID(one["id"]) for one in lesson.entries], reason=reason)
    lesson.state, lesson.reason = LessonState.TEACHING, reason
