"""Versions that shadow rollouts taught: which go live, when teaching ends,
what leaves the prompt and comes back."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from apps.adapters import services as services_of_adapters
from apps.adapters.models import AdapterVersion, GateResult, Policy
from apps.evaluation.choosing import gate, retiring, yardstick
from apps.evaluation.choosing.figures import Measured, Yardstick
from apps.evaluation.choosing.giving_way import HURRY_S, Interrupted
from apps.evaluation.choosing.measure import Teacher
from apps.memory import services
from apps.memory.models import Lesson, LessonState, Preference
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.evaluation.choosing.teaching import (
    WISH,
    choose,
    lesson_of,
    measure_with,
    prepare,
    stands,
    taught,
    the_lesson,
)
from tests.apps.evaluation.choosing.test_figures import BASE, STICK, TOLD
from tests.apps.memory.told import words_told
from tests.tenants import Somebody, add_somebody, add_version
from workers import publishing, upkeep


def test_the_better_one_goes_live_and_the_best_stays(somebody: Somebody, figures: Any) -> None:
    assert prepare(somebody)
    better, worse = taught(somebody, 1), taught(somebody, 2)

    figures(replace(BASE, passes=4, closeness=-1.5))
    assert choose(somebody, better) == ""
    figures(replace(BASE, passes=3, closeness=-1.6))
    assert choose(somebody, worse).startswith("not chosen: no better than the best so far")

    lesson = the_lesson(somebody)
    assert (lesson.best_id, lesson.best_score, lesson.without_gain) == (better.id, -1.5, 1)
    assert [step["version"] for step in lesson.figures["course"]] == [0, 1, 2]
    with tenant_scope(somebody.tenant.id):
        results = GateResult.objects.order_by("version__number").values_list("check_name", "passed")
        assert list(results) == [("held-out", True), ("held-out", False)]
    # the message comes twice: nothing is counted again
    figures(replace(BASE, passes=3, closeness=-1.6))
    choose(somebody, worse)
    assert the_lesson(somebody).without_gain == 1


def test_what_was_decided_stands_however_often_it_is_asked(somebody: Somebody, figures: Any) -> None:
    """Two publish it at once, or one dies before the pointer moves;
    replies are sampled, so it never measures the same twice."""
    prepare(somebody)
    better = taught(somebody, 1)
    figures(replace(BASE, passes=4, closeness=-1.5))
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(better) == ""
        figures(replace(BASE, passes=3, closeness=-1.502, on_topic=0))
        assert gate.choose(better) == ""
        # the one that had measured before it heard of the other
        lesson = Lesson.objects.get()
        now = replace(BASE, passes=3, closeness=-1.502)
        assert gate._decide(lesson.pk, better, now, STICK, taught=True) == ""
        assert GateResult.objects.get().passed
    lesson = the_lesson(somebody)
    assert (lesson.best_id, lesson.best_score, lesson.without_gain) == (better.id, -1.5, 0)
    assert len(lesson.figures["course"]) == 2


def test_what_left_the_prompt_while_a_version_was_measured_may_come_back(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(somebody)
    held = taught(somebody, 1)
    figures(replace(BASE, passes=13, closeness=-0.6))
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(held) == ""
        somebody.policy.live = held
        somebody.policy.save(update_fields=["live"])

    def measured(**_: object) -> Measured:
        with tenant_scope(somebody.tenant.id):
            retiring.settle(somebody.policy, stands(somebody))
        assert words_told(somebody) == []
        return replace(BASE, passes=2, closeness=-0.1)

    measure_with(monkeypatch, measured)
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(taught(somebody, 2)) == ""
    assert words_told(somebody) == [WISH]


def test_a_wish_that_was_changed_meanwhile_stays_in_the_prompt(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    held = taught(somebody, 1)
    figures(replace(BASE, passes=13, closeness=-0.6))
    with tenant_scope(somebody.tenant.id):
        before = stands(somebody)
        assert gate.choose(held) == ""
        somebody.policy.live = held
        somebody.policy.save(update_fields=["live"])
        services.edit_preference(
            preference_id=Preference.objects.get().id,
            user_id=somebody.user.id,
            text="Answer in French.",
            pinned=None,
            actor="test",
        )
        retiring.settle(somebody.policy, before)
    assert words_told(somebody) == ["Answer in French."]


def test_a_version_that_does_not_answer_any_more_holds_nothing(somebody: Somebody, figures: Any) -> None:
    """Who settles had read the pointer before it was moved."""
    prepare(somebody)
    held = taught(somebody, 1)
    figures(replace(BASE, passes=13, closeness=-0.6))
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(held) == ""
        somebody.policy.live = held
        somebody.policy.save(update_fields=["live"])
        Policy.objects.update(live=None)
        retiring.settle(somebody.policy, stands(somebody))
    assert words_told(somebody) == [WISH]


def test_what_a_version_held_is_told_again_once_another_answers(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    before, held = add_version(somebody.policy, 1), taught(somebody, 2)
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.filter(pk=held.pk).update(parent=before)
    figures(replace(BASE, passes=13, closeness=-0.6))
    choose(somebody, held)
    assert words_told(somebody) == []

    # what was trained from it holds it
    later = add_version(somebody.policy, 3, parent=held)
    publishing.look_what_is_held(tenant_id=str(somebody.tenant.id), policy_id=str(somebody.policy.id))
    upkeep.tell_again()
    assert words_told(somebody) == []

    with tenant_scope(somebody.tenant.id):
        moved = services_of_adapters.move_pointer(
            policy_id=somebody.policy.id, to_version_id=None, actor="user:x", reason="it got worse"
        )
        assert moved.before == later.number
        message = OutboxMessage.objects.get(task="workers.publishing.look_what_is_held")
    publishing.look_what_is_held(**message.kwargs)
    assert words_told(somebody) == [WISH]
    with tenant_scope(somebody.tenant.id):
        row = Preference.objects.get()
        assert (row.state, row.held_by_id) == ("active", None)
        assert row.reason == "the policy was moved to the bare base, which never learned it"


@pytest.mark.parametrize(
    "to", ["the bare base", "one before", "another branch", "another branch, further on"]
)
def test_it_is_told_again_where_the_message_was_lost(somebody: Somebody, figures: Any, to: str) -> None:
    prepare(somebody)
    before, held = add_version(somebody.policy, 1), taught(somebody, 2)
    figures(replace(BASE, passes=13, closeness=-0.6))
    choose(somebody, held)
    beside = add_version(somebody.policy, 3, live=False, parent=before)
    further = add_version(somebody.policy, 4, live=False, parent=beside)
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.filter(pk=held.pk).update(parent=before)
        AdapterVersion.objects.filter(pk=beside.pk).update(depth=2)
        upkeep.tell_again()
        assert words_told(somebody) == []
        somebody.policy.live = {"the bare base": None, "one before": before, "another branch": beside}.get(
            to, further
        )
        somebody.policy.save(update_fields=["live"])
    assert words_told(somebody) == []
    upkeep.tell_again()
    assert words_told(somebody) == [WISH]


def test_what_the_live_version_was_trained_from_holds_it_still(somebody: Somebody, figures: Any) -> None:
    """Every policy whose holder is not the live version is looked at,
    and only what lies off the lineage is found."""
    prepare(somebody)
    held = taught(somebody, 1)
    figures(replace(BASE, passes=13, closeness=-0.6))
    choose(somebody, held)
    other = add_somebody("other")
    add_version(other.policy, 3, parent=add_version(other.policy, 1))
    at = held
    for number in range(2, 5):
        at = add_version(somebody.policy, number, parent=at)
    with system_scope("tests"):
        assert services.held_elsewhere(limit=10) == []
        Preference.objects.update(held_by=None)
        assert services.held_elsewhere(limit=10) == [(somebody.tenant.id, somebody.policy.id)]
    with tenant_scope(other.tenant.id):
        assert services.held_elsewhere(limit=10) == []


def test_a_version_that_lost_something_does_not_go_live_however_close_it_is(
    somebody: Somebody, figures: Any
) -> None:
    prepare(somebody)
    figures(replace(BASE, passes=15, closeness=-0.5, on_topic=3))
    assert choose(somebody, taught(somebody, 1)) == "not chosen: loses its topic"
    assert words_told(somebody) == [WISH]


def test_several_without_a_gain_are_a_plateau(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    figures(BASE)
    for number in range(1, gate.PATIENCE + 1):
        assert the_lesson(somebody).state == LessonState.TEACHING
        choose(somebody, taught(somebody, number))
    assert the_lesson(somebody).state == LessonState.PLATEAU
    assert not prepare(somebody)


def test_what_the_teacher_cannot_do_is_not_taught(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = Teacher(Yardstick(0.0, replace(TOLD, passes=2), BASE), ((1, 2),))
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: mute)
    assert not prepare(somebody)
    assert the_lesson(somebody).reason == "the base does not do it either when it is told"

    # its first step was under way meanwhile
    figures(replace(BASE, passes=4, closeness=-1.0))
    version = taught(somebody, 1)
    assert choose(somebody, version) == "not chosen: the base does not do it either when it is told"
    with tenant_scope(somebody.tenant.id):
        assert not GateResult.objects.get(version=version).passed


def test_a_version_waits_for_what_it_is_measured_by(somebody: Somebody, figures: Any) -> None:
    figures(replace(BASE, passes=4, closeness=-1.0))
    lesson_of(somebody)
    version = taught(somebody, 1)
    with pytest.raises(Interrupted, match="what it is measured by is measured first"):
        choose(somebody, version)
    with tenant_scope(somebody.tenant.id):  # what people taught does not wait
        assert gate.choose(taught(somebody, 2, source="live")) == ""

    prepare(somebody)
    assert choose(somebody, version) == ""
    assert the_lesson(somebody).best_id == version.id


def test_a_version_does_not_wait_for_a_lesson_that_is_over(somebody: Somebody, figures: Any) -> None:
    """Nobody measures it, so it does not go live either."""
    lesson_of(somebody)
    with tenant_scope(somebody.tenant.id):
        Lesson.objects.update(state=LessonState.HELD)
        version = taught(somebody, 1)
        assert gate.choose(version) == f"not chosen: {gate.NOT_MEASURED}"
        assert [(one.passed, one.detail) for one in GateResult.objects.all()] == [
            (False, {"reason": gate.NOT_MEASURED})
        ]


def wish(somebody: Somebody, text: str, *, end_user: str | None = None) -> None:
    services.add_preference(
        policy_id=somebody.policy.id, user_id=somebody.user.id, end_user=end_user, text=text, actor="test"
    )


def change_what_is_wanted(somebody: Somebody, how: str) -> None:
    if how == "another wish":
        wish(somebody, "Call me Sam.")
    elif how == "a second person":
        wish(somebody, "Call me Sam.", end_user="guest")
    else:
        (row,) = Preference.objects.all()
        services.delete_preference(preference_id=row.id, user_id=somebody.user.id, actor="test")


CHANGES = {
    "another wish": "something else is wanted now",
    "nothing": "something else is wanted now: nobody wants anything",
    "a second person": "something else is wanted now:"
    " several people want things of this policy: they are told, not taught",
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("is_prepared", [True, False])
def test_what_teaches_something_else_than_is_wanted_does_not_go_live(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch, how: str, is_prepared: bool
) -> None:
    if is_prepared:
        prepare(somebody)
    else:
        lesson_of(somebody)
    version = taught(somebody, 1)
    measured: list[AdapterVersion] = []
    measure_with(monkeypatch, lambda **asked: measured.append(asked["version"]) or BASE)
    with tenant_scope(somebody.tenant.id):
        change_what_is_wanted(somebody, how)
        yardstick.check_measurable(version)  # it does not wait for anything
        assert gate.choose(version) == f"not chosen: {CHANGES[how]}"
        (result,) = GateResult.objects.all()
        assert (result.version_id, result.check_name, result.passed) == (version.id, "held-out", False)
        assert result.detail == {"reason": CHANGES[how]}
    assert measured == []


@pytest.mark.parametrize("how", CHANGES)
def test_what_is_not_wanted_by_the_time_it_was_measured_does_not_go_live(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    prepare(somebody)
    version = taught(somebody, 1)

    def measured(**_: object) -> Measured:
        change_what_is_wanted(somebody, how)
        return replace(BASE, passes=14, closeness=-0.5)

    measure_with(monkeypatch, measured)
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(version) == f"not chosen: {CHANGES[how]}"
        assert not GateResult.objects.get(version=version).passed
    assert the_lesson(somebody).best_id is None


@pytest.mark.parametrize("source", ["shadow", "live"])
def test_a_lesson_that_ended_while_a_version_was_measured_stays_over(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """What a fallen version brings back would make a second lesson that is taught."""
    prepare(somebody)
    figures(replace(BASE, passes=13, closeness=-0.6))
    choose(somebody, taught(somebody, 1))
    assert words_told(somebody) == []
    first = the_lesson(somebody)
    version = taught(somebody, 2, source=source)

    def measured(**_: object) -> Measured:
        wish(somebody, "Call me Sam.")
        assert lesson_of(somebody).pk != first.pk
        return replace(BASE, passes=2, closeness=-0.1)

    measure_with(monkeypatch, measured)
    with tenant_scope(somebody.tenant.id):
        said = "" if source == "live" else "not chosen: something else is wanted now"
        assert gate.choose(version) == said
        first.refresh_from_db()
        assert (first.state, len(first.figures["course"])) == (LessonState.ENDED, 2)
        assert [one.state for one in Lesson.objects.exclude(pk=first.pk)] == [LessonState.TEACHING]
        assert GateResult.objects.filter(version=version).exists() is (source == "shadow")


def test_whoever_chooses_measures_what_nobody_came_to(somebody: Somebody, figures: Any) -> None:
    figures(replace(BASE, passes=4, closeness=-1.0))
    lesson_of(somebody)
    version = taught(somebody, 1)
    version.created_at -= dt.timedelta(seconds=HURRY_S + 1)
    assert choose(somebody, version) == ""
    assert [step["version"] for step in the_lesson(somebody).figures["course"]] == [0, 1]


def test_what_the_weights_hold_leaves_the_prompt_and_comes_back(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    held = taught(somebody, 1)
    figures(replace(BASE, passes=13, closeness=-0.6))
    choose(somebody, held)
    assert words_told(somebody) == []
    assert the_lesson(somebody).state == LessonState.TEACHING
    with tenant_scope(somebody.tenant.id):
        assert Preference.objects.get().held_by_id == held.id

    # complaints about other things made a version that does without it no longer
    figures(replace(BASE, passes=9, closeness=-1.0))
    fallen = taught(somebody, 2, source="live")
    assert choose(somebody, fallen) == ""
    assert words_told(somebody) == [WISH]
    lesson = the_lesson(somebody)
    assert (lesson.state, lesson.best_id) == (LessonState.TEACHING, fallen.id)
    assert lesson.reason == "version 2: 9 of 16 held-out replies pass untold"


def test_teaching_goes_on_after_the_prompt_is_rid_of_it_until_nothing_is_better(
    somebody: Somebody, figures: Any
) -> None:
    prepare(somebody)
    figures(replace(BASE, passes=14, closeness=-0.9))
    choose(somebody, taught(somebody, 1))
    assert words_told(somebody) == []

    figures(replace(BASE, passes=14, closeness=-0.6))
    better = taught(somebody, 2)
    assert prepare(somebody)
    assert choose(somebody, better) == ""
    assert (the_lesson(somebody).best_id, the_lesson(somebody).state) == (better.id, LessonState.TEACHING)

    # none of these goes live, so what is live has not fallen
    figures(replace(BASE, passes=2, closeness=-0.6))
    for number in range(3, 3 + gate.PATIENCE):
        assert the_lesson(somebody).state == LessonState.TEACHING
        assert choose(somebody, taught(somebody, number)).startswith("not chosen")
        assert words_told(somebody) == []
    lesson = the_lesson(somebody)
    assert (lesson.state, lesson.best_id) == (LessonState.HELD, better.id)
    assert lesson.reason == "4 versions in a row were no better: the best so far stays"
    assert not prepare(somebody)


def test_a_plateau_where_all_passes_is_held(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    with tenant_scope(somebody.tenant.id):
        version = taught(somebody, 1)
        somebody.policy.live = version
        somebody.policy.save(update_fields=["live"])
        lesson = Lesson.objects.get()
        lesson.state, lesson.best = LessonState.PLATEAU, version
        lesson.figures["best"] = replace(BASE, passes=14).to_json()
        lesson.save()
        retiring.settle(somebody.policy, stands(somebody))
    assert the_lesson(somebody).state == LessonState.HELD
    assert words_told(somebody) == []
    assert not prepare(somebody)


def test_a_lesson_that_is_deleted_while_it_is_measured_decides_nothing(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(**_: object) -> Teacher:
        Lesson.objects.all().delete()
        return Teacher(STICK, ((1, 2),))

    with monkeypatch.context() as patched:
        patched.setattr(yardstick, "measure_teacher", gone)
        assert not prepare(somebody)
    assert prepare(somebody)
    assert "yardstick" in the_lesson(somebody).figures

    def measured(**_: object) -> Measured:
        Lesson.objects.all().delete()
        return BASE

    measure_with(monkeypatch, measured)
    with tenant_scope(somebody.tenant.id):
        assert gate.choose(taught(somebody, 1)) == "not chosen: something else is wanted now"
        assert GateResult.objects.get().detail == {"reason": "something else is wanted now"}


def test_what_people_taught_is_not_held_up(somebody: Somebody, figures: Any) -> None:
    prepare(somebody)
    figures(replace(BASE, on_topic=0))
    assert choose(somebody, taught(somebody, 1, source="live")) == ""
    with tenant_scope(somebody.tenant.id):
        change_what_is_wanted(somebody, "nothing")
        assert gate.choose(taught(somebody, 2, source="live")) == ""
        assert not GateResult.objects.exists()


def test_the_bare_base_is_measured_once(somebody: Somebody, figures: Any) -> None:
    figures(replace(BASE, passes=9))
    assert prepare(somebody)
    assert the_lesson(somebody).figures["best"] == BASE.to_json()
