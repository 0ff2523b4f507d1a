"""The rows of choosing: what a version measured, whether it goes live, what leaves the prompt and what comes back."""

import logging
import time
import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, GateResult, Policy, VersionState
from apps.adapters.placement import engine_for
from apps.adapters.publishing import HELD_OUT, why_left_behind
from apps.conversations.quiet import room_beside_people
from apps.engines.aside import Room
from apps.engines.selectors import pick_engine
from apps.evaluation.choosing.best import BETTER, START, follow_pointer, spent, step
from apps.evaluation.choosing.figures import (
    NOT_TELLING,
    Measured,
    Yardstick,
    has_fallen,
    holds,
    what_was_lost,
    why_not_better,
)
from apps.evaluation.choosing.giving_way import HURRY_S, GivesWay, Interrupted
from apps.evaluation.choosing.measure import Teacher, measure_teacher, measure_version
from apps.evaluation.choosing.wanted import UNWANTED, taught_by_shadows, why_unwanted
from apps.learning.shadow.plan import why_not_taught
from apps.memory import services as memory
from apps.memory.lessons import Standing, is_measured, standing, still_stands
from apps.memory.models import Lesson, LessonState, Preference, PreferenceState

logger = logging.getLogger(__name__)

PATIENCE = 4
"""Versions in a row that are no better make a plateau."""
GAPS_S = 60.0
"""So long it waits in all for gaps between them; then it is measured beside them."""
FORGOTTEN_S = 900.0
"""A version that waits for so long for the yardstick has it measured by whoever chooses: nobody came to its end."""
NOT_MEASURED = "its lesson was over before there was anything to measure it by"


def prepare(*, policy: Policy, stands: Standing, room: Room) -> None:
    """Measure what the lesson of what stands is measured by, and begins at, where that was not done yet.

    Where being told makes no difference to the base's own replies, nothing can be learned from it: the lesson ends on
    its plateau, and says so. Raises Interrupted, or what the engine's client raises.
    """
    lesson = Lesson.objects.filter(policy=policy, key=stands.key, state=LessonState.TEACHING).first()
    if lesson is None or is_measured(lesson):
        return
    began = time.monotonic()
    url = engine_for(policy.live)
    if "yardstick" in lesson.figures:  # reopened
        teacher = _teacher_of(lesson)
    else:
        teacher = measure_teacher(url=url, hint=stands.hint, room=room)
    start = teacher.yardstick.untold  # the bare base was measured just now
    if policy.live is not None:
        start = measure_version(url=url, version=policy.live, hint=stands.hint, teacher=teacher, room=room)
    logger.info("policy %s: the yardstick took %.1f s", policy.pk, time.monotonic() - began)
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
    nothing: it is not measured. Nor does one whose yardstick nobody else measures now (`why_not_taught`):
    whoever chooses does.
    """
    if version.state != VersionState.CREATED or not taught_by_shadows(version) or why_left_behind(version):
        return
    stands = standing(version.policy)
    if isinstance(stands, str) or why_unwanted(version, stands):
        return
    lesson = _lesson(version.policy, stands)
    if lesson is None or lesson.state != LessonState.TEACHING:  # nobody measures for a lesson that is over
        return
    if is_measured(lesson) or why_not_taught(version.policy):
        return
    if _age_s(version) <= FORGOTTEN_S:
        raise Interrupted("what it is measured by is measured first", retry_after_s=5.0)


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
    if _age_s(version) > HURRY_S:
        room = GivesWay(room_beside_people, patience_s=GAPS_S)
    if taught:
        prepare(policy=policy, stands=stands, room=room)  # done long ago, unless nobody came to it
    lesson = _lesson(policy, stands)
    if lesson is None or not is_measured(lesson):
        return _leave(version, NOT_MEASURED) if taught else ""
    if not (taught or stands.is_learned):
        return ""
    if (said := _said(lesson, version)) is not None:
        return _not_chosen(said, taught=taught)
    teacher = _teacher_of(lesson)
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


def _lesson(policy: Policy, stands: Standing) -> Lesson | None:
    return Lesson.objects.filter(policy=policy, key=stands.key).exclude(state=LessonState.ENDED).first()


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


def _age_s(version: AdapterVersion) -> float:
    return (timezone.now() - version.created_at).total_seconds()


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
        teacher, best = _teacher_of(lesson), Measured.from_json(lesson.figures["best"])
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
            _tell_again(lesson, now, version)
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


def _tell_again(lesson: Lesson, now: Measured, version: AdapterVersion) -> None:
    """Tell the person's preferences again: a new version does without them no longer."""
    reason = f"version {version.number}: {now.passes} of {now.of} held-out replies pass untold"
    memory.bring_back(preference_ids=[uuid.UUID(one["id"]) for one in lesson.entries], reason=reason)
    lesson.state, lesson.reason = LessonState.TEACHING, reason


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


def _teacher_of(lesson: Lesson) -> Teacher:
    stick = lesson.figures["yardstick"]
    return Teacher(
        Yardstick(stick["threshold"], Measured.from_json(stick["told"]), Measured.from_json(stick["untold"])),
        tuple(tuple(reply) for reply in lesson.figures["replies"]),
    )
