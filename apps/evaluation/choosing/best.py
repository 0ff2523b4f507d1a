"""The best version of a lesson so far, of those that the policy still answers from or may come to.

A lesson's course says what each version measured and which of them became the best. Where the pointer was
moved off the best one's lineage, that one is abandoned: the next step begins elsewhere, and is held against
what it begins at.
"""

import uuid
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.selectors import lineage_of
from apps.evaluation.choosing.figures import NOT_TELLING, Measured
from apps.memory.models import Lesson, LessonState

BETTER = "better"
START = "start"
_FIGURES = tuple(one.name for one in fields(Measured))


def step(
    version: AdapterVersion | None, measured: Measured, outcome: str, *, is_best: bool
) -> dict[str, Any]:
    """Return what a lesson's course keeps of a version;
    None is the bare base, which the yardstick measured."""
    number, written = (version.number, measured.written) if version is not None else (0, 0)
    return {
        "version": number,
        "outcome": outcome,
        "best": is_best,
        **spent(written),
        **measured.to_json(),
    }


def spent(tokens: int) -> dict[str, Any]:
    """Return when so many tokens were written to measure something, as `choosing_tokens` reads it."""
    return {"at": timezone.now().isoformat(), "written": tokens}


def follow_pointer(lesson: Lesson) -> bool:
    """Let a lesson's best be one of the live version's lineage, where it is none;
    return whether it was another one.

    The caller has the lesson locked and measured, and saves it. What was counted against the one
    that is left counts no more: a plateau of versions that were held against it is none. One that was chosen
    and is not live yet stays.
    """
    policy = Policy.objects.only("live_id").get(pk=lesson.policy_id)
    best_id = lesson.best_id
    if best_id == policy.live_id or (best_id is not None and _is_on_its_way(best_id)):
        return False
    alive: dict[int, uuid.UUID | None] = {0: None}
    alive.update((number, pk) for pk, number in lineage_of(policy, policy.live_id).items())
    course = [one for one in lesson.figures["course"] if _became_best(one)]
    found = next((one for one in reversed(course) if one["version"] in alive), None)
    now = alive[found["version"]] if found is not None else None
    if now == best_id:
        return False
    figures = lesson.figures["yardstick"]["untold"]  # of the bare base, which is in every lineage
    if found is not None:
        figures = {name: found[name] for name in _FIGURES}
    lesson.best_id, lesson.best_score, lesson.figures["best"] = now, figures["closeness"], figures
    lesson.without_gain = 0
    if lesson.state == LessonState.PLATEAU and lesson.reason != NOT_TELLING:
        lesson.state, lesson.reason = LessonState.TEACHING, ""
    return True


def _is_on_its_way(version_id: uuid.UUID) -> bool:
    return AdapterVersion.objects.filter(pk=version_id, state=VersionState.CREATED).exists()


def _became_best(one: Mapping[str, Any]) -> bool:
    return bool(one.get("best", one["outcome"] in (START, BETTER)))
