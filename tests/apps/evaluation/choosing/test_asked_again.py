"""What was learned is asked for again, pinned, or wanted again later: only what is measured since then counts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apps.adapters.models import AdapterVersion, VersionState
from apps.evaluation.choosing import gate, retiring, yardstick
from apps.evaluation.choosing.figures import Measured
from apps.evaluation.choosing.giving_way import Interrupted
from apps.evaluation.choosing.measure import Teacher
from apps.memory import services
from apps.memory.lessons import current_lesson, is_measured
from apps.memory.models import Lesson, LessonState, Preference
from kernel.tenancy import tenant_scope
from tests.apps.evaluation.choosing.teaching import (
    WISH,
    choose,
    lesson_of,
    prepare,
    stands,
    taught,
    the_lesson,
)
from tests.apps.evaluation.choosing.test_figures import BASE, STICK
from tests.apps.learning.ledger import add_turn, settle
from tests.apps.memory.told import words_told
from tests.tenants import Somebody

Figures = Callable[[Measured], None]
HOLDS = replace(BASE, passes=13, closeness=-0.6)
BETTER = replace(BASE, passes=14, closeness=-0.5)


@pytest.fixture
def held(somebody: Somebody, figures: Figures) -> AdapterVersion:
    """The wish has left the prompt; the version that held it answers."""
    prepare(somebody)
    version = taught(somebody, 1)
    figures(HOLDS)
    choose(somebody, version)
    assert words_told(somebody) == []
    return version


def made_from(parent: AdapterVersion, version: AdapterVersion) -> AdapterVersion:
    with tenant_scope(version.tenant_id):
        AdapterVersion.objects.filter(pk=parent.pk).update(state=VersionState.READY)
        AdapterVersion.objects.filter(pk=version.pk).update(parent=parent)
        return AdapterVersion.objects.select_related("policy").get(pk=version.pk)


def complain(somebody: Somebody, text: str = WISH) -> None:
    turn = add_turn(somebody)
    settle(turn, hints=(text,))
    with tenant_scope(somebody.tenant.id):
        services.remember(turn_id=turn.id)


def add(somebody: Somebody, text: str) -> Preference:
    with tenant_scope(somebody.tenant.id):
        return services.add_preference(
            policy_id=somebody.policy.id, user_id=somebody.user.id, end_user=None, text=text, actor="test"
        )


def pin(somebody: Somebody, *, pinned: bool) -> None:
    with tenant_scope(somebody.tenant.id):
        services.edit_preference(
            preference_id=Preference.objects.get().id, user_id=None, text=None, pinned=pinned, actor="test"
        )


def look(somebody: Somebody) -> Lesson:
    """A quiet second, as workers.shadow has it."""
    with tenant_scope(somebody.tenant.id):
        retiring.settle(somebody.policy, stands(somebody))
        return current_lesson(somebody.policy, stands(somebody))


@pytest.mark.parametrize("state", [LessonState.TEACHING, LessonState.PLATEAU, LessonState.HELD])
def test_a_complaint_about_what_was_learned_is_not_undone_by_what_was_measured_before(
    somebody: Somebody, figures: Figures, held: AdapterVersion, state: str
) -> None:
    with tenant_scope(somebody.tenant.id):
        Lesson.objects.update(state=state)
        first = Lesson.objects.get()
    complain(somebody)
    for _ in range(3):
        lesson = look(somebody)
        assert words_told(somebody) == [WISH]
    assert (lesson.pk == first.pk, lesson.state, is_measured(lesson)) == (False, LessonState.TEACHING, False)
    with tenant_scope(somebody.tenant.id):
        row = Preference.objects.get()
        assert (row.state, row.revision, row.reason, row.held_by_id) == ("active", 2, "asked for again", None)

    # the version that they complained of passes as often as it did: it is what the next is held against
    assert prepare(somebody)
    assert look(somebody).best_id == held.id
    assert words_told(somebody) == [WISH]
    figures(BETTER)
    better = made_from(held, taught(somebody, 2))
    assert choose(somebody, better) == ""
    assert words_told(somebody) == []
    with tenant_scope(somebody.tenant.id):
        assert Preference.objects.get().held_by_id == better.id


def test_what_is_pinned_is_told_until_it_is_unpinned(
    somebody: Somebody, figures: Figures, held: AdapterVersion
) -> None:
    pin(somebody, pinned=True)
    for _ in range(3):
        look(somebody)
        assert words_told(somebody) == [WISH]
    # the weights are taught it all the same
    prepare(somebody)
    figures(BETTER)
    better = made_from(held, taught(somebody, 2))
    assert choose(somebody, better) == ""
    assert (look(somebody).best_id, words_told(somebody)) == (better.id, [WISH])
    # nobody who retires by what was read before the pin takes it out either
    with tenant_scope(somebody.tenant.id):
        assert services.retire(entries=stands(somebody).entries, version=better, reason="x") == 0

    pin(somebody, pinned=False)
    look(somebody)
    assert words_told(somebody) == []


def test_a_pin_and_an_unpin_do_not_bring_back_what_was_measured_before(
    somebody: Somebody, held: AdapterVersion
) -> None:
    pin(somebody, pinned=True)
    pin(somebody, pinned=False)
    look(somebody)
    assert words_told(somebody) == [WISH]


def test_what_is_pinned_beside_what_is_learned_does_not_reopen_its_lesson(
    somebody: Somebody, figures: Figures
) -> None:
    with tenant_scope(somebody.tenant.id):
        services.add_preference(
            policy_id=somebody.policy.id,
            user_id=somebody.user.id,
            end_user=None,
            text="Call me Sam.",
            pinned=True,
            actor="test",
        )
    prepare(somebody)
    figures(HOLDS)
    choose(somebody, taught(somebody, 1))
    assert words_told(somebody) == ["Call me Sam."]
    with tenant_scope(somebody.tenant.id):
        Lesson.objects.update(state=LessonState.HELD)
    assert look(somebody).state == LessonState.HELD


def test_a_lesson_that_is_reopened_begins_at_what_answers_by_then(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(somebody)
    figures(replace(BASE, passes=9, closeness=-1.0))
    first = taught(somebody, 1)
    choose(somebody, first)
    before = the_lesson(somebody)
    other = add(somebody, "Answer in French.")
    prepare(somebody)
    figures(replace(BASE, passes=9, closeness=-0.9))
    second = made_from(first, taught(somebody, 2))
    assert choose(somebody, second) == ""

    with tenant_scope(somebody.tenant.id):
        services.delete_preference(preference_id=other.id, user_id=None, actor="test")
    lesson = lesson_of(somebody)
    assert (lesson.pk, lesson.state, lesson.best_id) == (before.pk, LessonState.TEACHING, None)
    assert not is_measured(lesson)
    version = made_from(second, taught(somebody, 3))
    with tenant_scope(somebody.tenant.id):
        retiring.look_at_pointer(policy_id=somebody.policy.id)
        with pytest.raises(Interrupted, match="what it is measured by is measured first"):
            gate.choose(version)

    # a lesson that was over keeps no replies: the yardstick is measured again, and what answers
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: Teacher(STICK, ((3, 4),)))
    figures(replace(BASE, passes=1, closeness=-2.2))
    assert prepare(somebody)
    lesson = look(somebody)
    assert (lesson.best_id, lesson.best_score) == (second.id, -2.2)
    course = [(one["version"], one["outcome"]) for one in lesson.figures["course"]]
    assert course == [(0, "start"), (1, "better"), (2, "start")]
    # of other replies than what is held against them now
    assert [one["best"] for one in lesson.figures["course"]] == [False, False, True]
    figures(replace(BASE, passes=3, closeness=-1.8))
    assert choose(somebody, version) == ""
    assert look(somebody).best_id == version.id


def test_what_was_measured_for_a_lesson_that_was_reopened_meanwhile_is_held_against_nothing(
    somebody: Somebody, held: AdapterVersion
) -> None:
    version = taught(somebody, 2)
    with tenant_scope(somebody.tenant.id):
        lesson = Lesson.objects.get()
        figures: dict[str, Any] = {key: one for key, one in lesson.figures.items() if key != "best"}
        Lesson.objects.update(figures=figures)
        with pytest.raises(Interrupted, match="what it is held against is measured first"):
            gate._decide(lesson.pk, version, BETTER, STICK, taught=True)


def test_the_opposite_and_back_again_is_taught_on(
    somebody: Somebody, figures: Figures, held: AdapterVersion
) -> None:
    add(somebody, "Give long, detailed answers.")
    prepare(somebody)
    long = made_from(held, taught(somebody, 2))
    figures(BETTER)
    assert choose(somebody, long) == ""
    complain(somebody)
    assert words_told(somebody) == [WISH]
    lesson_of(somebody)
    figures(replace(BASE, passes=0, closeness=-2.5))
    assert prepare(somebody)
    assert look(somebody).best_id == long.id
    at = long
    for number, (passes, closeness) in enumerate([(1, -2.2), (3, -1.8), (5, -1.4), (7, -1.0)], start=3):
        figures(replace(BASE, passes=passes, closeness=closeness))
        at = made_from(at, taught(somebody, number))
        assert choose(somebody, at) == ""
    assert (look(somebody).state, words_told(somebody)) == (LessonState.TEACHING, [WISH])
