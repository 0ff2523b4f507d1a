"""Choosing asks an engine in the policy's own quiet minutes, and what it writes counts there."""

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.pausing import pause_tenant
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.quiet import room_beside_people
from apps.evaluation.choosing import yardstick
from apps.evaluation.choosing.figures import Measured
from apps.evaluation.choosing.giving_way import HURRY_S, GivesWay, Interrupted, ask_all
from apps.learning.shadow.plan import tokens_today, why_not_taught
from apps.memory import services
from apps.memory.models import Lesson
from kernel.locks import alone
from kernel.tenancy import tenant_scope
from tests.apps.evaluation.choosing.teaching import (
    choose,
    lesson_of,
    measure_with,
    prepare,
    taught,
    the_lesson,
)
from tests.apps.evaluation.choosing.test_figures import BASE, TOLD
from tests.tenants import Somebody
from workers import shadow

Figures = Callable[[Measured], None]


def put(somebody: Somebody, **values: Any) -> None:
    with tenant_scope(somebody.tenant.id):
        services.set_setting(policy=somebody.policy, actor="test", **values)


def other_hours() -> dict[str, int]:
    hour = timezone.now().hour
    return {"shadow_from_hour": (hour + 2) % 24, "shadow_until_hour": (hour + 3) % 24}


WHAT_KEEPS_A_STEP = ("switch", "hours", "budget", "pause", "training", "platform")


def keep(somebody: Somebody, what: str, settings: Settings) -> None:
    """Let quiet minutes begin nothing more for the policy."""
    if what == "pause":
        pause_tenant(tenant_id=somebody.tenant.pk, reason="unpaid bills", actor="user:1")
    elif what == "training":
        with tenant_scope(somebody.tenant.id):
            Policy.objects.update(training_enabled=False)
    elif what == "platform":
        settings.SHADOW_ENABLED = False
    else:
        values: dict[str, dict[str, Any]] = {
            "switch": {"shadow": False},
            "hours": other_hours(),
            "budget": {"shadow_tokens_per_day": 0},
        }
        put(somebody, **values[what])


def anew(version: AdapterVersion) -> AdapterVersion:
    """Return a version as another process reads it."""
    with tenant_scope(version.tenant_id):
        return AdapterVersion.objects.get(pk=version.pk)


def test_what_choosing_writes_counts_as_what_shadow_rollouts_write(
    somebody: Somebody, figures: Figures
) -> None:
    prepare(somebody)
    yardstick = TOLD.written + BASE.written
    assert TOLD.written == round(TOLD.of * TOLD.mean_tokens)
    with tenant_scope(somebody.tenant.id):
        assert tokens_today(somebody.policy) == yardstick > 0
    now = replace(BASE, passes=4, closeness=-1.5, of=8, mean_tokens=11.0)
    figures(now)
    assert choose(somebody, taught(somebody, 1)) == ""
    with tenant_scope(somebody.tenant.id):
        assert tokens_today(somebody.policy) == yardstick + 88
        lesson = Lesson.objects.get()
        long_ago = (timezone.now() - dt.timedelta(hours=25)).isoformat()
        lesson.figures["yardstick"]["at"] = long_ago
        lesson.save()
        assert tokens_today(somebody.policy) == 88


@pytest.mark.parametrize("what", WHAT_KEEPS_A_STEP)
def test_no_yardstick_is_measured_outside_of_quiet_minutes_for_what_people_said(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch, settings: Settings, what: str
) -> None:
    lesson_of(somebody)
    asked: list[str] = []
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: asked.append("teacher"))
    measure_with(monkeypatch, lambda **_: asked.append("version"))
    version = taught(somebody, 1, source="live")
    with tenant_scope(somebody.tenant.id):
        assert shadow.step_is_under_way(Policy.objects.get())
        keep(somebody, what, settings)
        assert why_not_taught(Policy.objects.get()) != ""
        shadow.teach_once(somebody.policy.id)
    assert choose(somebody, anew(version)) == ""
    assert asked == []


@pytest.mark.parametrize("what", WHAT_KEEPS_A_STEP)
def test_a_step_that_began_is_chosen_whatever_keeps_the_next_one(
    somebody: Somebody, figures: Figures, settings: Settings, what: str
) -> None:
    """Its samples are consumed: a version that nobody looks at any more would lose them."""
    prepare(somebody)
    figures(replace(BASE, passes=4, closeness=-1.5))
    version = taught(somebody, 1)
    keep(somebody, what, settings)
    assert choose(somebody, anew(version)) == ""
    assert [one["version"] for one in the_lesson(somebody).figures["course"]] == [0, 1]


@pytest.mark.parametrize("what", WHAT_KEEPS_A_STEP)
def test_and_so_is_one_whose_yardstick_nobody_else_measures(
    somebody: Somebody, figures: Figures, settings: Settings, what: str
) -> None:
    """It does not wait for somebody to come to it; a plateau is counted towards."""
    lesson_of(somebody)
    version = taught(somebody, 1)
    with tenant_scope(somebody.tenant.id), pytest.raises(Interrupted):
        yardstick.check_measurable(anew(version))
    keep(somebody, what, settings)
    with tenant_scope(somebody.tenant.id):
        shadow.teach_once(somebody.policy.id)
        yardstick.check_measurable(anew(version))
    assert choose(somebody, anew(version)).startswith("not chosen: no better than the best so far")
    lesson = the_lesson(somebody)
    assert (lesson.without_gain, [one["version"] for one in lesson.figures["course"]]) == (1, [0, 1])


def test_who_is_interrupted_says_when_it_goes_on() -> None:
    with pytest.raises(Interrupted) as interrupted:
        ask_all([1], room_beside_people, lambda _: None)
    assert interrupted.value.message == (
        "somebody asked meanwhile; it begins again once nobody asks, and a version that is 2 minutes old goes on "
        "between people's requests"
    )


def test_a_version_that_waited_is_measured_between_people(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(somebody)
    rooms: list[Any] = []
    measure_with(monkeypatch, lambda **asked: rooms.append(asked["room"]) or BASE)
    for number, waited_s in ((1, 0.0), (2, HURRY_S + 1)):
        version = taught(somebody, number)
        version.created_at -= dt.timedelta(seconds=waited_s)
        choose(somebody, version)
    assert rooms[0] is room_beside_people
    assert isinstance(rooms[1], GivesWay)


def test_two_do_not_measure_the_same_yardstick_side_by_side(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would take the engine from each other, and one would go on for minutes after the other was done."""
    lesson_of(somebody)
    asked: list[str] = []
    monkeypatch.setattr(yardstick, "measure_teacher", lambda **_: asked.append("teacher"))
    version = taught(somebody, 1)
    version.created_at -= dt.timedelta(seconds=HURRY_S + 1)
    held, may_end = threading.Event(), threading.Event()

    def measuring() -> None:
        with alone(f"yardstick:{somebody.policy.pk}") as first:
            assert first
            held.set()
            assert may_end.wait(30)
        connection.close()

    other = threading.Thread(target=measuring)
    other.start()
    try:
        assert held.wait(30)
        with pytest.raises(Interrupted, match="measured first"):
            choose(somebody, version)
        with tenant_scope(somebody.tenant.id):
            shadow.teach_once(somebody.policy.id)  # looks each second: it has nothing to say
    finally:
        may_end.set()
        other.join()
    assert asked == []
