"""The gate: what a version measured, and whether it goes live."""

import logging
import time
import uuid
from typing import Any

from django.db import transaction

from apps.adapters.models import AdapterVersion, GateResult
from apps.adapters.publishing import HELD_OUT
from apps.conversations.quiet import room_beside_people
from apps.engines.aside import Room
from apps.engines.selectors import pick_engine
from apps.evaluation.choosing.best import BETTER, follow_pointer, step
from apps.evaluation.choosing.figures import (
    NOT_TELLING,
    Measured,
    Yardstick,
    has_fallen,
    what_was_lost,
    why_not_better,
)
from apps.evaluation.choosing.giving_way import HURRY_S, GivesWay, Interrupted
from apps.evaluation.choosing.measure import measure_version
from apps.evaluation.choosing.retiring import tell_again
from apps.evaluation.choosing.wanted import UNWANTED, taught_by_shadows, why_unwanted
from apps.evaluation.choosing.yardstick import (
    MEASURED_FIRST,
    age_s,
    check_measurable,
    lesson_of,
    prepare,
    teacher_of,
)
from apps.memory.lessons import is_measured, standing
from apps.memory.models import Lesson, LessonState, Preference, PreferenceState

logger = logging.getLogger(__name__)

PATIENCE = 4
"""Versions in a row that are no better make a plateau."""
GAPS_S = 60.0
"""So long it waits in all for gaps between them; then it is measured beside them."""
NOT_MEASURED = "its lesson was over before there was anything to measure it by"


def choose(version: AdapterVersion) -> str:
    """Return why a version that passed its other checks must not go live, or "". Writes its gate result.

    Only what shadow rollouts taught is chosen here, and never goes live unmeasured; a batch of them has
    nothing else in it. What people's own judgements taught goes live as ever, but is measured where the
    policy has learned something that it could lose. Raises Interrupted while people ask, and while what
    the version is to be measured by is not there.

    What keeps a step from beginning (a pause, the switch, the hours, the tokens of a day) keeps none that was
    made from its choice: its samples are consumed, and would have taught nothing.
    """
    check_measurable(version)
    policy = version.policy
    stands = standing(policy)
    taught = taught_by_shadows(version)
    if taught and (why := why_unwanted(version, stands)):
        return _leave(version, why)
    if isinstance(stands, str):
        return ""
    room: Room = room_beside_people
    if age_s(version) > HURRY_S:
        room = GivesWay(room_beside_people, patience_s=GAPS_S)
    # done long ago, unless nobody came to it
    if taught and not prepare(policy=policy, stands=stands, room=room):
        raise Interrupted(MEASURED_FIRST, retry_after_s=5.0)
    lesson = lesson_of(policy, stands)
    if lesson is None or not is_measured(lesson):
        return _leave(version, NOT_MEASURED) if taught else ""
    if not (taught or stands.is_learned):
        return ""
    if (said := _said(lesson, version)) is not None:
        return _not_chosen(said, taught=taught)
    teacher = teacher_of(lesson)
    began = time.monotonic()
    now = measure_version(
        url=pick_engine(version.served_name),
        version=version,
        hint=stands.hint,
        teacher=teacher,
        room=room,
        in_full=stands.is_learned or lesson.state != LessonState.TEACHING,
    )
    logger.info(
        "%s: %d of %d pass, %.1f s", version.served_name, now.passes, now.of, time.monotonic() - began
    )
    return _decide(lesson.pk, version, now, teacher.yardstick, taught=taught)


def _leave(version: AdapterVersion, why: str) -> str:
    """Write that a version was not measured; return that it is not chosen."""
    _write_result(version, why, {})
    return _not_chosen(why, taught=True)


def _write_result(version: AdapterVersion, why: str, figures: dict[str, Any]) -> None:
    GateResult.objects.update_or_create(
        version=version,
        check_name=HELD_OUT,
        defaults={
            "tenant_id": version.tenant_id,
            "passed": not why,
            "detail": {**figures, "reason": why},
        },
    )


def _decide(
    lesson_id: uuid.UUID,
    version: AdapterVersion,
    now: Measured,
    yardstick: Yardstick,
    *,
    taught: bool,
) -> str:
    with transaction.atomic():
        lesson = Lesson.objects.select_for_update(of=("self",)).filter(pk=lesson_id).first()
        if lesson is None or lesson.state == LessonState.ENDED:  # while the version was measured
            if not taught:
                return ""
            return _leave(version, why_unwanted(version, standing(version.policy)) or UNWANTED)
        if (said := _said(lesson, version)) is not None:  # the message came twice
            return _not_chosen(said, taught=taught)
        if taught and (unwanted := why_unwanted(version, standing(version.policy))):
            return _leave(version, unwanted)
        if not is_measured(lesson):  # it was over, and was reopened
            raise Interrupted("what it is held against is measured first", retry_after_s=5.0)
        follow_pointer(lesson)
        best = Measured.from_json(lesson.figures["best"])
        nothing = "" if yardstick.is_telling else NOT_TELLING
        why = what_was_lost(now, yardstick) or nothing or why_not_better(now, best)
        goes_live = not (why and taught)
        # as it is now: it may have left the prompt, or come back, while the version was measured
        wanted = Preference.objects.filter(pk__in=[one["id"] for one in lesson.entries])
        learned = not wanted.filter(state=PreferenceState.ACTIVE, pinned=False).exists()
        fallen = learned and goes_live and has_fallen(now, yardstick)
        is_best = fallen or (taught and not why)
        lesson.figures["course"].append(step(version, now, why or BETTER, is_best=is_best))
        if fallen:
            tell_again(lesson, now, version)
        if is_best:
            lesson.best, lesson.best_score, lesson.without_gain = version, now.closeness, 0
            lesson.figures["best"] = now.to_json()
        elif taught:
            _count_without_gain(lesson, learned=learned)
        lesson.save()
        told = {"told_passes": yardstick.told.passes, "told_of": yardstick.told.of}
        _write_result(version, why, {**now.to_json(), **told})
    return _not_chosen(why, taught=taught)


def _said(lesson: Lesson, version: AdapterVersion) -> str | None:
    """Return why a version was found to be no better, or "", as it was decided before; None where it was not.

    Who decided may have died before the pointer moved, or be about to move it: replies are sampled, and measured again
    the best so far would be no better than itself.
    """
    course = lesson.figures["course"]
    outcome: str | None = next((one["outcome"] for one in course if one["version"] == version.number), None)
    return "" if outcome == BETTER else outcome


def _not_chosen(why: str, *, taught: bool) -> str:
    return f"not chosen: {why}"[:500] if why and taught else ""


def _count_without_gain(lesson: Lesson, *, learned: bool) -> None:
    lesson.without_gain += 1
    if lesson.state == LessonState.TEACHING and lesson.without_gain >= PATIENCE:
        lesson.state = LessonState.HELD if learned else LessonState.PLATEAU
        lesson.reason = f"{PATIENCE} versions in a row were no better: the best so far stays"
