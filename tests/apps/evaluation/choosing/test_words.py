"""What a lesson was measured by was written to people's words, and goes when they do."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.conversations.models import Session, Turn
from apps.evaluation.choosing import gate, yardstick
from apps.evaluation.choosing.measure import Teacher
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.erasure.work import Step, erase
from apps.governance.models import Erasure, Subject
from apps.learning.models import Sample
from apps.learning.upkeep import set_unwanted_aside
from apps.memory import services
from apps.memory.lessons import current_lesson, end_lessons
from apps.memory.models import Lesson, LessonState, Preference
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.evaluation.choosing.teaching import prepare, stands, taught, the_lesson
from tests.apps.evaluation.choosing.test_figures import STICK
from tests.apps.learning.ledger import add_turn, settle
from tests.tenants import Somebody


def hear(somebody: Somebody, words: str) -> Turn:
    turn = add_turn(somebody)
    settle(turn, hints=(words,))
    with tenant_scope(somebody.tenant.id):
        services.remember(turn_id=turn.id)
    return turn


@pytest.fixture
def said(somebody: Somebody, figures: Any) -> Turn:
    """The turn that said what the measured lesson is about."""
    with tenant_scope(somebody.tenant.id):
        Preference.objects.all().delete()
    turn = hear(somebody, "Call me Marco Sanchez.")
    prepare(somebody)
    lesson = the_lesson(somebody)
    assert (lesson.state, lesson.figures["replies"]) == (LessonState.TEACHING, [[1, 2]])
    return turn


def _the_entry_is_deleted(somebody: Somebody, _: Turn) -> None:
    row = Preference.objects.get()
    services.delete_preference(preference_id=row.pk, user_id=somebody.user.id, actor="test")


def _it_is_put_in_other_words(somebody: Somebody, _: Turn) -> None:
    row = Preference.objects.get()
    services.edit_preference(
        preference_id=row.pk, user_id=somebody.user.id, text="Call me Bob.", pinned=None, actor="test"
    )


def _it_is_typed(somebody: Somebody, _: Turn) -> None:
    services.add_preference(
        policy_id=somebody.policy.id,
        user_id=somebody.user.id,
        end_user=None,
        text="Address me as Marco Sanchez.",
        actor="test",
    )
    assert Preference.objects.count() == 1


def _its_session_is_to_be_deleted(somebody: Somebody, said: Turn) -> None:
    request_erasure(tenant_id=somebody.tenant.id, meant=Meant(Subject.SESSION, said.session_id), actor="test")


def _its_person_is_to_be_deleted(somebody: Somebody, _: Turn) -> None:
    request_erasure(tenant_id=somebody.tenant.id, meant=Meant(Subject.MEMBER, somebody.user.id), actor="test")


def _its_session_is_old(somebody: Somebody, said: Turn) -> None:
    then = timezone.now() - dt.timedelta(days=9)
    Session.objects.filter(pk=said.session_id).update(last_turn_at=then)
    somebody.policy.config = {"retention_days": 3}
    somebody.policy.save()
    erasure = Erasure.objects.create(
        subject=Subject.AGED,
        subject_id=somebody.policy.id,
        older_than_days=3,
        actor="test",
        turns_total=1,
        moved_at=timezone.now(),
    )
    assert erase(erasure_id=erasure.pk) == Step.DONE
    assert Turn.objects.count() == 0


def _its_row_is_found_without_ground(somebody: Somebody, said: Turn) -> None:
    said.session.delete()
    assert services.forget_groundless() == 1


def _nothing_may_be_taught(somebody: Somebody, _: Turn) -> None:
    end_lessons(somebody.policy, "nobody wants anything")


@pytest.mark.parametrize(
    "act",
    [
        _the_entry_is_deleted,
        _it_is_put_in_other_words,
        _it_is_typed,
        _its_session_is_to_be_deleted,
        _its_person_is_to_be_deleted,
        _its_session_is_old,
        _its_row_is_found_without_ground,
        _nothing_may_be_taught,
    ],
)
def test_when_words_go_their_lesson_ends_and_keeps_no_reply_to_them(
    somebody: Somebody, said: Turn, act: Callable[[Somebody, Turn], None]
) -> None:
    with tenant_scope(somebody.tenant.id):
        act(somebody, said)
        lesson = Lesson.objects.get()
        assert lesson.state == LessonState.ENDED
        assert set(lesson.figures) == {"course"}


def test_the_words_of_a_session_that_are_not_told_are_missed_by_no_lesson(
    somebody: Somebody, said: Turn
) -> None:
    """The same was said again later: it is told in the first one's words."""
    later = hear(somebody, "Address me as Marco Sanchez.")
    with tenant_scope(somebody.tenant.id):
        assert Preference.objects.count() == 1
        current_lesson(somebody.policy, stands(somebody))
        prepare(somebody)
        _its_session_is_to_be_deleted(somebody, later)
        assert Lesson.objects.exclude(state=LessonState.ENDED).get().figures["replies"] == [[1, 2]]
        _its_session_is_to_be_deleted(somebody, said)
        assert not Lesson.objects.exclude(state=LessonState.ENDED).exists()


def test_a_lesson_that_was_over_is_measured_anew(
    somebody: Somebody, said: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(somebody.tenant.id):
        end_lessons(somebody.policy, "for a test")
        monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: Teacher(STICK, ((3, 4),)))
        assert prepare(somebody)
        lesson = Lesson.objects.get()
        assert (lesson.state, lesson.figures["replies"]) == (LessonState.TEACHING, [[3, 4]])
        assert gate.choose(taught(somebody, 1)) != gate.NOT_MEASURED


def test_replies_to_words_that_went_while_they_were_written_are_not_kept(
    somebody: Somebody, figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(somebody.tenant.id):
        Preference.objects.all().delete()
    said = hear(somebody, "Call me Marco Sanchez.")

    def measured(**_: object) -> Teacher:
        said.session.delete()  # by no deletion that would end the lesson
        return Teacher(STICK, ((1, 2),))

    monkeypatch.setattr(yardstick, "measure_teacher", measured)
    prepare(somebody)
    assert the_lesson(somebody).figures == {}


def test_postgres_refuses_a_lesson_that_is_over_and_keeps_replies(somebody: Somebody, said: Turn) -> None:
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(IntegrityError), transaction.atomic():
            Lesson.objects.update(state=LessonState.ENDED)
        end_lessons(somebody.policy, "for a test")
        with pytest.raises(IntegrityError), transaction.atomic():
            Lesson.objects.update(figures={"replies": []})


def test_what_waits_to_teach_a_deleted_wish_keeps_no_words_though_nothing_is_taught_any_more(
    somebody: Somebody, said: Turn
) -> None:
    with tenant_scope(somebody.tenant.id):
        entries = stands(somebody).entries
        for text in ("Call me Marco Sanchez.", ""):
            hint = {"text": text, "prompt_ids": [1, 2], "preferences": entries if text else []}
            Sample.objects.create(
                policy=somebody.policy, turn=add_turn(somebody), source="shadow", hints=[hint]
            )
        somebody.policy.training_enabled = False
        somebody.policy.save()
        with system_scope("upkeep"):
            assert set_unwanted_aside() == 0
        _the_entry_is_deleted(somebody, said)
        with system_scope("upkeep"):
            assert set_unwanted_aside() == 1
        assert sorted(Sample.objects.values_list("state", "hints__0__text")) == [
            ("dropped", None),
            ("ready", ""),
        ]
