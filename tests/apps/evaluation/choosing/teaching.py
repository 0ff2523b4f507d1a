"""One lesson of one person, and versions that are taught for it, as choosing meets them."""

from collections.abc import Callable
from typing import Any

import pytest

from apps.adapters.models import AdapterVersion, VersionState
from apps.evaluation.choosing import gate, retiring, yardstick
from apps.learning.models import Sample, TrainingRun
from apps.memory.lessons import Standing, current_lesson, standing
from apps.memory.models import Lesson, LessonState
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn
from tests.tenants import Somebody, add_version

WISH = "Answer in one short sentence."


def measure_with(monkeypatch: pytest.MonkeyPatch, find: Callable[..., Any]) -> None:
    """Have the start of a lesson and its versions measured by `find`, as no engine could be told to."""
    monkeypatch.setattr(yardstick, "measure_version", find)
    monkeypatch.setattr(gate, "measure_version", find)


def stands(somebody: Somebody) -> Standing:
    found = standing(somebody.policy)
    assert isinstance(found, Standing)
    return found


def lesson_of(somebody: Somebody) -> Lesson:
    with tenant_scope(somebody.tenant.id):
        return current_lesson(somebody.policy, stands(somebody))


def prepare(somebody: Somebody) -> bool:
    """Measure the yardstick; return whether it teaches something."""
    with tenant_scope(somebody.tenant.id):
        lesson = lesson_of(somebody)
        yardstick.prepare(policy=somebody.policy, stands=stands(somebody), room=lambda: 8)
        return Lesson.objects.filter(pk=lesson.pk, state=LessonState.TEACHING).exists()


def taught(somebody: Somebody, number: int, *, source: str = "shadow") -> AdapterVersion:
    """A version that is made and not live yet, by a run of one sample; a shadow one taught what stands."""
    version = add_version(somebody.policy, number, live=False)
    turn = add_turn(somebody)
    with tenant_scope(somebody.tenant.id):
        run = TrainingRun.objects.create(
            id=version.run_id, policy=somebody.policy, trigger="threshold", state="succeeded", version=version
        )
        wanted = standing(somebody.policy)
        hints: list[dict[str, Any]] = []
        if source == "shadow" and isinstance(wanted, Standing):
            hints = [{"text": "", "prompt_ids": [], "preferences": wanted.entries}]
        Sample.objects.create(
            policy=somebody.policy, turn=turn, source=source, run=run, state="claimed", hints=hints
        )
        AdapterVersion.objects.filter(pk=version.pk).update(state=VersionState.CREATED, ready_at=None)
        return AdapterVersion.objects.select_related("policy").get(pk=version.pk)


def choose(somebody: Somebody, version: AdapterVersion) -> str:
    """Choose, and move the pointer as publishing does."""
    with tenant_scope(somebody.tenant.id):
        why = gate.choose(version)
        if not why:
            somebody.policy.live = version
            somebody.policy.save(update_fields=["live"])
        retiring.settle(somebody.policy, stands(somebody))
    return why


def the_lesson(somebody: Somebody) -> Lesson:
    with tenant_scope(somebody.tenant.id):
        return Lesson.objects.get()
