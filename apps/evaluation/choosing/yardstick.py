"""What a lesson is measured by: made once, by whoever has the time, and waited for by the versions it decides about."""

import logging
import time
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.placement import engine_for
from apps.adapters.publishing import why_left_behind
from apps.engines.aside import Room
from apps.evaluation.choosing.best import START, spent, step
from apps.evaluation.choosing.figures import NOT_TELLING, Measured, Yardstick
from apps.evaluation.choosing.giving_way import HURRY_S, Interrupted
from apps.evaluation.choosing.measure import Teacher, measure_teacher, measure_version
from apps.evaluation.choosing.wanted import taught_by_shadows, why_unwanted
from apps.learning.shadow.plan import why_not_taught
from apps.memory.lessons import Standing, is_measured, standing, still_stands
from apps.memory.models import Lesson, LessonState
from kernel.locks import alone

logger = logging.getLogger(__name__)

MEASURED_FIRST = "what it is measured by is measured first"


def prepare(*, policy: Policy, stands: Standing, room: Room) -> bool:
    """Measure what the lesson of what stands is measured by, and begins at, where that was not done yet;
    return False where another process is at it.

    Two would take an engine from each other for the same figures. Where being told makes no difference to the base's
    own replies, nothing can be learned from it: the lesson ends on its plateau, and says so. Raises Interrupted, or
    what the engine's client raises.
    """
    with alone(f"yardstick:{policy.pk}") as first:
        if not first:
            return False
        lesson = Lesson.objects.filter(policy=policy, key=stands.key, state=LessonState.TEACHING).first()
        if lesson is None or is_measured(lesson):
            return True
        began = time.monotonic()
        teacher, start = _measure(lesson, policy, stands, room)
        logger.info("policy %s: the yardstick took %.1f s", policy.pk, time.monotonic() - began)
        _keep(lesson, policy, stands, teacher, start)
    return True


def _measure(lesson: Lesson, policy: Policy, stands: Standing, room: Room) -> tuple[Teacher, Measured]:
    url = engine_for(policy.live)
    if "yardstick" in lesson.figures:  # reopened
        teacher = teacher_of(lesson)
    else:
        teacher = measure_teacher(url=url, hint=stands.hint, room=room)
    if policy.live is None:
        return teacher, teacher.yardstick.untold  # the bare base was measured just now
    return teacher, measure_version(
        url=url, version=policy.live, hint=stands.hint, teacher=teacher, room=room
    )


def _keep(lesson: Lesson, policy: Policy, stands: Standing, teacher: Teacher, start: Measured) -> None:
    with transaction.atomic():
        if not still_stands(policy, stands):  # nothing is kept that was written to words which are gone
            return
        teaching = Lesson.objects.filter(pk=lesson.pk, state=LessonState.TEACHING)
        held = teaching.select_for_update(of=("self",)).first()
        if held is None or is_measured(held):  # over, or measured by somebody else, meanwhile
            return
        course = held.figures.get("course", [])
        if "yardstick" not in held.figures:  # it was over: what is told of it was measured by other replies
            course = [{**one, "best": False} for one in course]
        held.figures = {
            **_teacher_json(teacher),
            "best": start.to_json(),
            "course": [*course, step(policy.live, start, START, is_best=True)],
        }
        held.best, held.best_score = policy.live, start.closeness
        if not teacher.yardstick.is_telling:
            held.state, held.reason = LessonState.PLATEAU, NOT_TELLING
        held.save()


def check_measurable(version: AdapterVersion) -> None:
    """Raise Interrupted where a created version waits for what it is to be measured by; cheap enough to ask often.

    One that the policy was moved away from, or that was taught what is not wanted any more, waits for
    nothing: it is not measured. Nor does one whose yardstick nobody else measures now (`why_not_taught`), or
    nobody came to in two minutes: whoever chooses does.
    """
    if version.state != VersionState.CREATED or not taught_by_shadows(version) or why_left_behind(version):
        return
    stands = standing(version.policy)
    if isinstance(stands, str) or why_unwanted(version, stands):
        return
    lesson = lesson_of(version.policy, stands)
    if lesson is None or lesson.state != LessonState.TEACHING:  # nobody measures for a lesson that is over
        return
    if is_measured(lesson) or why_not_taught(version.policy):
        return
    if age_s(version) <= HURRY_S:
        raise Interrupted(MEASURED_FIRST, retry_after_s=5.0)


def lesson_of(policy: Policy, stands: Standing) -> Lesson | None:
    """Return the lesson of what stands, unless there is none or it is over."""
    return Lesson.objects.filter(policy=policy, key=stands.key).exclude(state=LessonState.ENDED).first()


def teacher_of(lesson: Lesson) -> Teacher:
    """Return what a measured lesson measures versions by."""
    stick = lesson.figures["yardstick"]
    return Teacher(
        Yardstick(stick["threshold"], Measured.from_json(stick["told"]), Measured.from_json(stick["untold"])),
        tuple(tuple(reply) for reply in lesson.figures["replies"]),
    )


def age_s(version: AdapterVersion) -> float:
    """Return how long ago a version was made, seconds."""
    return (timezone.now() - version.created_at).total_seconds()


def _teacher_json(teacher: Teacher) -> dict[str, Any]:
    stick = teacher.yardstick
    return {
        "yardstick": {
            "threshold": stick.threshold,
            "told": stick.told.to_json(),
            "untold": stick.untold.to_json(),
            **spent(stick.told.written + stick.untold.written),
        },
        "replies": [list(reply) for reply in teacher.replies],
    }
