"""Choosing asks an engine in the policy's own quiet minutes, and what it writes counts there."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from apps.adapters.models import GateResult, Policy
from apps.conversations.quiet import room_beside_people
from apps.evaluation.choosing import gate
from apps.evaluation.choosing.figures import Measured
from apps.evaluation.choosing.giving_way import GivesWay
from apps.learning.shadow.plan import tokens_today
from apps.memory import services
from apps.memory.models import Lesson
from kernel.tenancy import tenant_scope
from tests.apps.evaluation.choosing.teaching import choose, lesson_of, prepare, taught
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


def said_of(values: dict[str, int]) -> str:
    return f"only from {values['shadow_from_hour']} to {values['shadow_until_hour']} o'clock UTC"


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


@pytest.mark.parametrize("what", ["switch", "hours", "budget"])
def test_no_yardstick_is_measured_outside_of_the_policys_quiet_minutes(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Neither by who teaches nor, after however long, by who chooses:
    the version is not chosen, and says why."""
    lesson_of(somebody)
    hours = other_hours()
    values, said = {
        "switch": ({"shadow": False}, "shadow rollouts are switched off"),
        "hours": (hours, said_of(hours)),
        "budget": ({"shadow_tokens_per_day": 0}, "the budget of 0 tokens a day is used up"),
    }[what]
    asked: list[str] = []
    monkeypatch.setattr(gate, "measure_teacher", lambda **_: asked.append("teacher"))
    monkeypatch.setattr(gate, "measure_version", lambda **_: asked.append("version"))
    version = taught(somebody, 1)
    with tenant_scope(somebody.tenant.id):
        assert shadow.step_is_under_way(Policy.objects.get())
        put(somebody, **values)
        shadow.teach_once(somebody.policy.id)
        gate.check_measurable(version)
        version.created_at -= dt.timedelta(seconds=gate.FORGOTTEN_S + 1)
        assert gate.choose(version) == f"not chosen: {said}"
        assert GateResult.objects.get().detail == {"reason": said}
    assert asked == []


@pytest.mark.parametrize("source", ["shadow", "live"])
def test_what_was_begun_is_measured_over_the_budget_but_not_at_other_hours(
    somebody: Somebody, figures: Figures, source: str
) -> None:
    prepare(somebody)
    figures(replace(BASE, passes=4, closeness=-1.5))
    put(somebody, shadow_tokens_per_day=0)
    assert choose(somebody, taught(somebody, 1)) == ""
    hours = other_hours()
    put(somebody, **hours)
    figures(replace(BASE, passes=5, closeness=-1.2))
    said = choose(somebody, taught(somebody, 2, source=source))
    assert said == ("" if source == "live" else f"not chosen: {said_of(hours)}")


def test_a_version_that_waited_is_measured_between_people(
    somebody: Somebody, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(somebody)
    rooms: list[Any] = []
    monkeypatch.setattr(gate, "measure_version", lambda **asked: rooms.append(asked["room"]) or BASE)
    for number, waited_s in ((1, 0.0), (2, gate.HURRY_S + 1)):
        version = taught(somebody, number)
        version.created_at -= dt.timedelta(seconds=waited_s)
        choose(somebody, version)
    assert rooms[0] is room_beside_people
    assert isinstance(rooms[1], GivesWay)
