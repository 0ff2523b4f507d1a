"""Which version is a lesson's best once the policy answers from another lineage than the best one's."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.adapters.models import AdapterVersion, VersionState
from apps.evaluation.choosing import gate, retiring, yardstick
from apps.evaluation.choosing.best import follow_pointer
from apps.evaluation.choosing.figures import Measured, Yardstick
from apps.evaluation.choosing.measure import Teacher
from apps.memory.models import Lesson, LessonState
from kernel.tenancy import tenant_scope
from tests.apps.evaluation.choosing.teaching import choose, lesson_of, prepare, stands, taught, the_lesson
from tests.apps.evaluation.choosing.test_figures import BASE, TOLD
from tests.tenants import Somebody
from workers import publishing

FIRST = replace(BASE, passes=3, closeness=-1.6)
SECOND = replace(BASE, passes=5, closeness=-1.2)


def ready(version: AdapterVersion, *, parent: AdapterVersion | None) -> AdapterVersion:
    """What publishing makes of a version, whose parent is the one that was trained from."""
    with tenant_scope(version.tenant_id):
        AdapterVersion.objects.filter(pk=version.pk).update(state=VersionState.READY, parent=parent)
    return version


def point(somebody: Somebody, version: AdapterVersion | None, *, message: bool = True) -> None:
    """Move the pointer, and let the message that says so arrive or be lost."""
    with tenant_scope(somebody.tenant.id):
        somebody.policy.live = version
        somebody.policy.save(update_fields=["live"])
    if message:
        publishing.look_what_is_held(tenant_id=str(somebody.tenant.id), policy_id=str(somebody.policy.id))


@pytest.fixture
def two(somebody: Somebody, figures: Callable[[Measured], None]) -> tuple[AdapterVersion, AdapterVersion]:
    """Two versions, one trained from the other, each the best in its turn; the second is live."""
    assert prepare(somebody)
    first, second = taught(somebody, 1), taught(somebody, 2)
    figures(FIRST)
    assert choose(somebody, first) == ""
    ready(first, parent=None)
    figures(SECOND)
    assert choose(somebody, second) == ""
    ready(second, parent=first)
    assert the_lesson(somebody).best_id == second.id
    return first, second


def best(somebody: Somebody) -> tuple[Any, float | None, Measured]:
    lesson = the_lesson(somebody)
    return lesson.best_id, lesson.best_score, Measured.from_json(lesson.figures["best"])


def test_after_a_rollback_the_best_is_one_of_what_still_answers(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion]
) -> None:
    first, second = two
    point(somebody, first)
    assert best(somebody) == (first.id, -1.6, FIRST)
    point(somebody, None)
    assert best(somebody) == (None, BASE.closeness, BASE)
    point(somebody, second)  # and forward again
    assert best(somebody) == (second.id, -1.2, SECOND)


def test_following_reads_the_lineage_once_and_what_no_version_measured(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion]
) -> None:
    first, _ = two
    point(somebody, first, message=False)
    lesson = the_lesson(somebody)
    with tenant_scope(somebody.tenant.id), CaptureQueriesContext(connection) as asked:
        assert follow_pointer(lesson)
    assert lesson.best_id == first.id
    said = [one["sql"] for one in asked]
    assert [sql for sql in said if '"metrics"' in sql] == []
    assert len([sql for sql in said if '"parent_id"' in sql]) == 1


def test_what_is_made_after_a_rollback_is_held_against_what_it_began_at(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion], figures: Callable[[Measured], None]
) -> None:
    """Also where the message was lost: it would be no better than the version that nobody answers from."""
    first, _ = two
    point(somebody, first, message=False)
    between = replace(BASE, passes=4, closeness=-1.4)
    figures(between)
    third = taught(somebody, 3)
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.filter(pk=third.pk).update(parent=first)
        assert gate.choose(third) == ""
    assert best(somebody) == (third.id, -1.4, between)


def test_a_look_at_what_is_held_finds_a_move_that_nobody_told_of(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion]
) -> None:
    first, _ = two
    point(somebody, first, message=False)
    with tenant_scope(somebody.tenant.id):
        retiring.settle(somebody.policy, stands(somebody))
    assert best(somebody) == (first.id, -1.6, FIRST)


def test_one_that_was_chosen_and_is_not_live_yet_stays_the_best(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion], figures: Callable[[Measured], None]
) -> None:
    _, second = two
    third = taught(somebody, 3)
    found = replace(BASE, passes=9, closeness=-0.9)
    figures(found)
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.filter(pk=third.pk).update(parent=second)
        assert gate.choose(third) == ""
        retiring.look_at_pointer(policy_id=somebody.policy.id)
    assert best(somebody) == (third.id, -0.9, found)
    # it never came: somebody had moved the pointer meanwhile
    ready(third, parent=second)
    with tenant_scope(somebody.tenant.id):
        retiring.look_at_pointer(policy_id=somebody.policy.id)
    assert best(somebody) == (second.id, -1.2, SECOND)


def test_a_plateau_of_what_is_left_behind_is_none(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion], figures: Callable[[Measured], None]
) -> None:
    first, second = two
    figures(BASE)
    for number in range(3, 3 + gate.PATIENCE):
        choose(somebody, taught(somebody, number))
    assert the_lesson(somebody).state == LessonState.PLATEAU
    point(somebody, second)
    assert the_lesson(somebody).state == LessonState.PLATEAU
    point(somebody, first)
    lesson = the_lesson(somebody)
    assert (lesson.state, lesson.reason, lesson.without_gain) == (LessonState.TEACHING, "", 0)


def test_what_the_base_cannot_do_is_not_taught_after_a_rollback_either(
    somebody: Somebody, figures: Callable[[Measured], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = Teacher(Yardstick(0.0, replace(TOLD, passes=2), BASE), ((1, 2),))
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: mute)
    start = ready(taught(somebody, 1), parent=None)
    point(somebody, start)
    lesson_of(somebody)
    assert not prepare(somebody)
    assert the_lesson(somebody).best_id == start.id
    point(somebody, None)
    assert best(somebody) == (None, BASE.closeness, BASE)
    assert the_lesson(somebody).state == LessonState.PLATEAU


def test_one_that_fell_is_what_the_next_is_held_against_until_it_is_left(
    somebody: Somebody, two: tuple[AdapterVersion, AdapterVersion], figures: Callable[[Measured], None]
) -> None:
    _, second = two
    held = replace(BASE, passes=14, closeness=-0.6)
    figures(held)
    third = taught(somebody, 3)
    choose(somebody, third)
    ready(third, parent=second)
    fell = replace(BASE, passes=2, closeness=-1.9)
    figures(fell)
    fallen = taught(somebody, 4, source="live")
    assert choose(somebody, fallen) == ""
    ready(fallen, parent=third)
    assert best(somebody) == (fallen.id, -1.9, fell)
    later = ready(taught(somebody, 5, source="live"), parent=fallen)
    point(somebody, later)  # goes live unmeasured, as what people taught does
    assert best(somebody) == (fallen.id, -1.9, fell)
    point(somebody, third)
    assert best(somebody) == (third.id, -0.6, held)


def test_a_lesson_without_a_yardstick_has_nothing_to_follow(somebody: Somebody) -> None:
    lesson_of(somebody)
    point(somebody, ready(taught(somebody, 1), parent=None))
    with tenant_scope(somebody.tenant.id):
        assert Lesson.objects.values_list("best_id", "figures").get() == (None, {})
