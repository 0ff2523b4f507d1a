"""The second and third gauge: what is trained on against what is served,
and against what people say and do."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from apps.conversations.models import Feedback, Session, Turn
from apps.learning.drift import pauses, readings
from apps.learning.drift.models import Crossing, DriftReading, Gauge
from apps.learning.drift.selection import inverse_propensity
from apps.learning.models import Sample, SampleState
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.drifting import alerts, step
from tests.apps.learning.ledger import add_turn, settle, unsent
from tests.tenants import Somebody


@pytest.fixture(autouse=True)
def _scope(somebody: Somebody) -> Any:
    with tenant_scope(somebody.tenant.id):
        yield


def week_of_turns(somebody: Somebody, ago_days: float, *texts: str, **fields: Any) -> list[Turn]:
    found = []
    for text in texts:
        turn = add_turn(somebody, question=text, **fields)
        when = timezone.now() - dt.timedelta(days=ago_days)
        Turn.objects.filter(pk=turn.pk).update(created_at=when)
        Session.objects.filter(pk=turn.session_id).update(created_at=when)
        found.append(turn)
    return found


def sample_of(somebody: Somebody, turn: Turn, state: str = SampleState.READY, **fields: Any) -> Sample:
    reason = "greedy" if state == SampleState.INELIGIBLE else ""
    return Sample.objects.create(
        policy=somebody.policy, turn=turn, source="live", state=state, reason=reason, **fields
    )


def now_reading(somebody: Somebody, gauge: str) -> DriftReading:
    until = timezone.now()
    readings.measure(policy_id=somebody.policy.id, run_id=None, until=until)
    readings.measure(policy_id=somebody.policy.id, run_id=None, until=until)
    return DriftReading.objects.get(gauge=gauge, until=until)


def test_what_is_trained_on_is_held_against_what_is_served(somebody: Somebody) -> None:
    taught = week_of_turns(somebody, 1, *["a question"] * 10, sampling={"temperature": 1.2})
    week_of_turns(somebody, 1, *["a question"] * 30, sampling={"top_p": 0.9})
    week_of_turns(somebody, 1, *["a title for it"] * 40, sampling={"temperature": 0.0}, side=True)
    for turn in taught:
        sample_of(somebody, turn)
    found = now_reading(somebody, Gauge.ROLLOUT_DEPLOY)
    assert found.values["sampling_shift"] == 0.75
    assert found.values["temperature_taught"] == pytest.approx(1.2)
    assert found.values["temperature_served"] == pytest.approx(0.825)
    assert found.detail["served"] == {"T=0.7 top_p=0.9": 30, "T=1.2": 10}
    assert found.detail["taught"] == {"T=1.2": 10}
    assert {c.measure for c in Crossing.objects.all()} == {"sampling_shift", "temperature_gap"}
    assert alerts() == ["drift.crossed"] * 2


def test_another_topic_this_week_is_told_of(somebody: Somebody) -> None:
    week_of_turns(somebody, 9, *["how long must sourdough bread proof before the oven"] * 12)
    week_of_turns(somebody, 2, *["may the landlord keep my deposit after the lease ends"] * 12)
    found = now_reading(somebody, Gauge.ROLLOUT_DEPLOY)
    assert found.values["topic_shift"] == pytest.approx(1.0)
    assert found.values["topic_excess"] > 0.3
    assert found.detail["conversations"] == found.detail["conversations_before"] == 12
    crossing = Crossing.objects.get(measure="topic_excess")
    assert crossing.words.endswith("people talk of other things than what it was trained on")


def test_the_same_topics_and_small_weeks_are_not(somebody: Somebody) -> None:
    week_of_turns(somebody, 9, *["sourdough bread in the oven", "rye flour and yeast"] * 6)
    week_of_turns(somebody, 2, *["sourdough bread in the oven", "rye flour and yeast"] * 6)
    assert now_reading(somebody, Gauge.ROLLOUT_DEPLOY).values["topic_excess"] == 0.0
    Turn.objects.filter(messages__0__content__startswith="rye").update(side=True)
    assert "topic_shift" not in now_reading(somebody, Gauge.ROLLOUT_DEPLOY).values
    assert Crossing.objects.count() == 0


def test_what_the_filters_let_through_and_the_weights_that_make_up_for_it(somebody: Somebody) -> None:
    short = week_of_turns(somebody, 1, *["short"] * 40, output_ids=[1] * 5, output_logprobs=[-1.0] * 5)
    long = week_of_turns(somebody, 1, *["long"] * 20, output_ids=[1] * 50, output_logprobs=[-1.0] * 50)
    cut = week_of_turns(somebody, 1, *["cut"] * 20, finish_reason="length")
    for turn in short[:30]:
        sample_of(somebody, turn)
    taught_long = [sample_of(somebody, turn) for turn in long[:5]]
    for turn in (*short[30:], *long[5:], *cut):
        sample_of(somebody, turn, SampleState.INELIGIBLE)
    found = now_reading(somebody, Gauge.LEARNER_DEPLOY)
    assert found.values["let_through"] == 35 / 80
    # taught (30, 5, 0)/35 against all (40, 20, 20)/80
    assert found.values["selection_shift"] == pytest.approx(30 / 35 - 0.5)
    assert found.detail["reasons"] == {"greedy": 45}

    until = timezone.now()
    weights = inverse_propensity(somebody.policy, since=until - dt.timedelta(days=7), until=until)
    assert len(weights.by_sample) == 35
    assert weights.unreachable == 0.25
    mean = (30 * (4 / 3) + 5 * 4) / 35
    assert weights.by_sample[taught_long[0].id] == pytest.approx(4 / mean)
    assert sum(weights.by_sample.values()) == pytest.approx(35)
    assert weights.ess == pytest.approx((30 * 4 / 3 + 5 * 4) ** 2 / (30 * (4 / 3) ** 2 + 5 * 16) / 35)


def test_a_judge_that_people_contradict_stops_training(somebody: Somebody) -> None:
    for number in range(20):
        (turn,) = week_of_turns(somebody, 1, f"question {number}")
        settle(turn, reward=1, hints=())
        Feedback.objects.create(turn=turn, user=somebody.user, score=1 if number < 5 else -1)
    found = now_reading(somebody, Gauge.LEARNER_DEPLOY)
    assert (found.values["judge_agreement"], found.values["judge_kappa"]) == (0.25, 0.0)
    assert found.detail["judged_by_both"] == 20
    assert pauses.why_paused(somebody.policy.id).startswith("agreement of the judge with people is 0.25")


def test_rewards_after_which_people_stay_away_are_told_of(somebody: Somebody) -> None:
    for number in range(20):
        with system_scope("tests"):
            person = type(somebody.user).objects.create_user(f"p{number}@acme.example")
        good = number < 10
        back = number in {0, 10, 11, 12, 13, 14}
        for ago in (10, 8) if back else (10,):
            (turn,) = week_of_turns(somebody, ago, "a question")
            Session.objects.filter(pk=turn.session_id).update(user=person)
            if ago == 10:
                sample_of(somebody, turn, reward=1.0 if good else -1.0)
    found = now_reading(somebody, Gauge.LEARNER_DEPLOY)
    assert found.values["reward_retention"] == pytest.approx(0.1 - 0.5)
    assert found.detail["sessions"] == {"good": 10, "bad": 10}
    assert [c.measure for c in Crossing.objects.all()] == ["reward_retention"]


def test_a_run_has_one_reading_of_each_gauge_however_often_the_message_comes(somebody: Somebody) -> None:
    run = step(somebody)
    for _ in range(3):
        readings.measure(policy_id=somebody.policy.id, run_id=run.id)
    assert sorted(DriftReading.objects.filter(run=run).values_list("gauge", flat=True)) == sorted(
        Gauge.values
    )
    readings.measure(policy_id=uuid.uuid4(), run_id=run.id)
    readings.measure(policy_id=somebody.policy.id, run_id=uuid.uuid4())
    assert DriftReading.objects.count() == 3


def test_the_clock_asks_for_each_week_of_those_that_were_talked_to_once(somebody: Somebody) -> None:
    end = readings.last_week()
    assert end.weekday() == 0
    turn = add_turn(somebody)
    with system_scope("clock"):
        assert readings.ask_for_weeks(limit=10) == 0
    Turn.objects.filter(pk=turn.pk).update(created_at=end - dt.timedelta(days=3))
    with system_scope("clock"):
        assert readings.ask_for_weeks(limit=10) == 1
    (message,) = unsent("workers.drift.measure")
    assert message.kwargs["until"] == end.isoformat()
    readings.measure(
        policy_id=somebody.policy.id, run_id=None, until=dt.datetime.fromisoformat(end.isoformat())
    )
    with system_scope("clock"):
        assert readings.ask_for_weeks(limit=10) == 0
