"""Gauges read at a step's end, what a crossing does, once, and how an operator goes on."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.adapters.publishing import publish
from apps.alerts.models import Alert
from apps.conversations.models import Feedback, Session, Turn
from apps.engines.replies import EngineUnavailable
from apps.learning import commits, runs, schedule
from apps.learning.commits import StepResult
from apps.learning.drift import actions, pauses, readings
from apps.learning.drift.models import Crossing, DriftReading, Gauge, TrainingPause
from apps.learning.drift.selection import inverse_propensity
from apps.learning.models import Sample, SampleState, TrainingRun
from apps.learning.runs import Claim, cancel_run, claim_run, request_run
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.artefacts import write_files
from tests.apps.learning.ledger import add_samples, add_turn, made, queue_run, settle, states_of, unsent
from tests.tenants import Somebody, add_version

CALM = {
    "train_rollout_logprob_abs_diff": 0.04,
    "rollout_k3": 0.002,
    "ratio_mean": 1.0,
    "ratio_max": 1.4,
    "ess": 0.97,
    "clip_fraction": 0.0,
    "mask_fraction": 0.0,
    "step_k3": 0.02,
    "step_logprob_abs_diff": 0.05,
    "lr": 4e-4,
    "staleness": {"0": 8},
}


def step(somebody: Somebody, *, outcome: str = "made", samples: int = 8, **measured: Any) -> TrainingRun:
    """Make one step whose trainer measured this; a version that it made becomes live unless it is withheld."""
    add_samples(somebody, samples, version=Policy.objects.get(pk=somebody.policy.pk).live)
    run = queue_run(somebody)
    claim = claim_run(run_id=run.id)
    assert claim is not None
    run = commits.commit_run(run_id=run.id, fence=claim.fence, result=result(claim, outcome, **measured))
    if run.version is not None and run.version.state == VersionState.CREATED:
        AdapterVersion.objects.filter(pk=run.version_id).update(state=VersionState.READY)
        Policy.objects.filter(pk=run.policy_id).update(live=run.version)
    return run


def result(claim: Claim, outcome: str = "made", **measured: Any) -> StepResult:
    metrics = {**CALM, **measured}
    said = {
        str(sample.id): {
            "parts": ["rl"],
            "tokens": len(sample.turn.output_ids),
            "logprob_abs_diff": 0.04 + 0.1 * (sample.staleness or 0),
        }
        for sample in claim.samples
    }
    if outcome == "made":
        whole = made(claim, *write_files(claim))
        return StepResult(
            outcome="made",
            code="ok",
            reason="a version was made",
            metrics=metrics,
            sample_outcomes=said,
            files=whole.files,
        )
    return StepResult(
        outcome=outcome,  # type: ignore[arg-type]
        code=outcome,
        reason=f"it was {outcome}",
        metrics=metrics,
        sample_outcomes=said,
    )


@pytest.fixture(autouse=True)
def _scope(somebody: Somebody) -> Any:
    with tenant_scope(somebody.tenant.id):
        yield


def configure(somebody: Somebody, **drift: Any) -> None:
    Policy.objects.filter(pk=somebody.policy.pk).update(config={"drift": drift})


def reading(run: TrainingRun) -> DriftReading:
    return DriftReading.objects.get(run=run, gauge=Gauge.ROLLOUT_LEARNER)


def live(somebody: Somebody) -> int:
    policy = Policy.objects.select_related("live").get(pk=somebody.policy.pk)
    return policy.live.number if policy.live else 0


def alerts() -> list[str]:
    rows = Alert.objects.exclude(event__in=["version.live", "run.failed"]).order_by("id")
    return [row.event for row in rows]


def test_a_step_is_read_in_its_commit(somebody: Somebody) -> None:
    run = step(somebody)
    found = reading(run)
    tokens = len(Turn.objects.all()[0].output_ids)
    assert found.values == {
        **{name: value for name, value in CALM.items() if name != "staleness"},
        "staleness_mean": 0.0,
        "staleness_max": 0.0,
        "reply_tokens": float(tokens),
        "repetition": 0.0,
    }
    assert found.detail == {
        "staleness": {"0": 8},
        "gap_by_staleness": {"0": pytest.approx(0.04)},
        "samples": 8,
    }
    assert found.bounds["rollout_k3"] == [0.5, "pause"]
    assert (found.version_id, run.reason.partition(";")[0]) == (run.version_id, "a version was made")
    assert Crossing.objects.count() == 0
    assert [m.kwargs["run_id"] for m in unsent("workers.drift.measure")] == [str(run.id)]


def test_a_step_that_counts_for_nothing_is_not_read(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    claim = claim_run(run_id=queue_run(somebody).id)
    assert claim is not None
    cancel_run(run_id=claim.run.id, actor="user:1")
    with pytest.raises(runs.LeaseLost):
        commits.commit_run(run_id=claim.run.id, fence=claim.fence, result=result(claim))
    add_samples(somebody, 8)
    step(somebody, outcome="failed", samples=0)
    assert DriftReading.objects.count() == 0


def test_the_jump_across_a_version_boundary_is_measured(somebody: Somebody) -> None:
    first = step(somebody).version
    assert first is not None
    add_samples(somebody, 4, version=None)  # of the bare base: one step back by now
    run = step(somebody, samples=4, staleness={"0": 4, "1": 4})
    found = reading(run)
    assert found.values["boundary_jump"] == pytest.approx(0.1)
    assert found.values["staleness_mean"] == 0.5
    assert found.detail["gap_by_staleness"] == {"0": pytest.approx(0.04), "1": pytest.approx(0.14)}


def test_past_a_bound_training_stops_by_itself_with_the_reason_in_words(somebody: Somebody) -> None:
    run = step(somebody, rollout_k3=0.9)
    words = (
        "k3 from engine to learner is 0.9 nats a token, over the bound of 0.5: "
        "the replies that it learns from are not those of this policy"
    )
    crossing = Crossing.objects.get()
    assert (crossing.words, crossing.action, crossing.value, crossing.bound) == (words, "pause", 0.9, 0.5)
    assert crossing.acted_at is not None
    assert pauses.why_paused(somebody.policy.id) == words
    assert words in run.reason
    assert alerts() == ["policy.paused", "drift.crossed"]
    told = Alert.objects.get(event="drift.crossed")
    assert told.words == f"Drift of default: {words}."
    assert told.done == "Training is paused until somebody resumes it."
    assert (told.run_id, told.version_id) == (run.id, run.version_id)

    # nothing starts: not by threshold, not by clock, not by hand; what was queued ends and says why
    add_samples(somebody, 16)
    with transaction.atomic():
        assert schedule.consider(policy_id=somebody.policy.id) is None
    with pytest.raises(Conflict, match="training of default is paused: k3 from engine"):
        request_run(policy=somebody.policy, actor="user:1")
    queued = queue_run(somebody)
    assert claim_run(run_id=queued.id) is None
    queued.refresh_from_db()
    assert queued.state == "cancelled"
    assert queued.reason.startswith("training is paused: k3 from engine")
    assert states_of(somebody)["ready"] == 16


def test_an_operator_resumes_and_another_crossing_acts_anew(somebody: Somebody) -> None:
    step(somebody, rollout_k3=0.9)
    add_samples(somebody, 8)
    pauses.resume(policy_id=somebody.policy.id, actor="user:7", reason="the engine was repaired")
    row = TrainingPause.objects.get()
    assert (row.resumed_by, pauses.why_paused(somebody.policy.id)) == ("user:7", "")
    assert Crossing.objects.get().cleared_by == "resumed by user:7"
    assert [e.action for e in AuditEntry.objects.order_by("id") if e.action.startswith("policy.")] == [
        "policy.pause",
        "policy.resume",
    ]
    with pytest.raises(Conflict, match="is not paused"):
        pauses.resume(policy_id=somebody.policy.id, actor="user:7", reason="again")

    step(somebody, samples=0, rollout_k3=0.9)
    assert Crossing.objects.filter(cleared_at=None).count() == 1
    assert TrainingPause.objects.filter(resumed_at=None).count() == 1


def test_a_measure_that_dances_on_its_bound_acts_once(somebody: Somebody) -> None:
    configure(somebody, reward_same={"action": "off"})
    for ess in (0.39, 0.41, 0.39, 0.45, 0.2, 0.39):
        step(somebody, ess=ess)
    assert Crossing.objects.count() == 1
    assert alerts() == ["drift.crossed"]
    step(somebody, ess=0.6)
    assert Crossing.objects.get().cleared_by == "the measure: 0.6"
    step(somebody, ess=0.39)
    assert alerts() == ["drift.crossed"] * 2
    assert pauses.why_paused(somebody.policy.id) == ""


def test_a_step_too_far_is_withheld_and_the_version_before_goes_on(somebody: Somebody) -> None:
    step(somebody)
    assert live(somebody) == 1
    run = step(somebody, step_k3=5.8)
    version = run.version
    assert version is not None
    assert (version.number, version.state, live(somebody)) == (2, VersionState.REFUSED, 1)
    assert version.reason.startswith("drift: k3 of the step is 5.8 nats a token, over the bound of 5")
    assert publish(version.pk).outcome == "refused"
    crossing = Crossing.objects.get(measure="step_k3")
    assert crossing.acted_at is not None
    assert crossing.done == (
        "Version 2 is withheld, the one before it goes on answering. Training is paused until somebody resumes it."
    )
    assert unsent("workers.drift.fall_back") == []
    assert pauses.why_paused(somebody.policy.id).startswith("k3 of the step")


def test_the_bound_of_a_policy_says_what_happens(somebody: Somebody) -> None:
    configure(somebody, rollout_k3={"action": "alert"}, step_k3={"limit": 9.0}, ess={"action": "off"})
    run = step(somebody, rollout_k3=0.9, step_k3=5.8, ess=0.1)
    assert [(c.measure, c.done) for c in Crossing.objects.all()] == [("rollout_k3", "Nothing was changed.")]
    assert (pauses.why_paused(somebody.policy.id), live(somebody)) == ("", 1)
    assert reading(run).bounds["rollout_k3"] == [0.5, "alert"]
    assert "ess" not in reading(run).bounds


def test_a_fall_back_without_a_new_version_moves_the_pointer_once(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(somebody, rollout_k3={"action": "fall_back"})
    one = add_version(somebody.policy, 1)
    two = add_version(somebody.policy, 2, parent=one)
    run = step(somebody, outcome="skipped", rollout_k3=0.9)
    assert (run.version_id, live(somebody)) == (None, 2)
    crossing = Crossing.objects.get()
    assert (crossing.version_id, crossing.acted_at) == (two.pk, None)
    assert [m.kwargs["crossing_id"] for m in unsent("workers.drift.fall_back")] == [str(crossing.pk)]

    def away(*_: Any) -> None:
        raise EngineUnavailable("no engine answers", retry_after_s=1.0)

    monkeypatch.setattr("apps.adapters.placement.bring_back", away)
    actions.fall_back(crossing_id=crossing.pk)
    assert live(somebody) == 2
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 1

    monkeypatch.setattr("apps.adapters.placement.bring_back", lambda _version: None)
    for _ in range(3):
        actions.fall_back(crossing_id=crossing.pk)
    assert live(somebody) == 1
    move = PointerMove.objects.get()
    assert (move.actor, move.reason.startswith("drift: k3 from engine to learner is 0.9")) == (
        "system:drift",
        True,
    )
    crossing.refresh_from_db()
    assert crossing.done.startswith("The policy answers from version 1 again.")
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 0


def test_a_fall_back_leaves_a_policy_alone_that_has_moved_meanwhile(somebody: Somebody) -> None:
    configure(somebody, rollout_k3={"action": "fall_back"})
    add_version(somebody.policy, 1)
    step(somebody, outcome="skipped", rollout_k3=0.9)
    Policy.objects.update(live=None)
    actions.fall_back(crossing_id=Crossing.objects.get().pk)
    assert Crossing.objects.get().done.startswith("The policy had moved to another version already.")
    assert PointerMove.objects.count() == 0


def test_a_fall_back_that_an_operator_was_faster_than_is_not_done(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.adapters.placement.bring_back", lambda _version: None)
    configure(somebody, rollout_k3={"action": "fall_back"})
    add_version(somebody.policy, 2, parent=add_version(somebody.policy, 1))
    step(somebody, outcome="skipped", rollout_k3=0.9)
    pauses.resume(policy_id=somebody.policy.id, actor="user:1", reason="it is well")
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 0
    actions.fall_back(crossing_id=Crossing.objects.get().pk)
    assert live(somebody) == 2
    assert Crossing.objects.get().done == "It was over before anything was done: resumed by user:1."


def test_a_refused_ancestor_is_passed_over(somebody: Somebody) -> None:
    one = add_version(somebody.policy, 1, live=False)
    two = add_version(somebody.policy, 2, live=False, parent=one)
    AdapterVersion.objects.filter(pk=two.pk).update(state=VersionState.REFUSED)
    three = AdapterVersion.objects.get(pk=add_version(somebody.policy, 3, parent=two).pk)
    assert actions.version_before(three) == one
    assert actions.version_before(one) is None


def test_a_learning_rate_too_low_to_learn_is_said_on_the_run(somebody: Somebody) -> None:
    said = (
        "the change of log-probabilities by the step is 2e-06 nats, under the bound of 0.001: "
        "≈ 0, the learning rate of 1e-05 is too low to learn anything"
    )
    first = step(somebody, step_logprob_abs_diff=2e-6, lr=1e-5)
    assert said in first.reason
    assert "drift.crossed" not in alerts()  # a first step may be small
    second = step(somebody, step_logprob_abs_diff=2e-6, lr=1e-5)
    assert said in second.reason
    assert [row.words for row in Alert.objects.filter(event="drift.crossed")] == [
        f"Drift of default: {said}."
    ]


def test_a_judge_that_is_pleased_by_anything_is_told_of(somebody: Somebody) -> None:
    """Reward always +1: advantages go to 0, and the guards of length, repetition and sameness speak."""
    for number in range(4):
        tokens = [*range(100, 120)] if number < 3 else [7, 8, 9, 10] * 30
        for _ in range(8):
            turn = add_turn(somebody, output_ids=tokens, output_logprobs=[-0.5] * len(tokens))
            Sample.objects.create(policy=somebody.policy, turn=turn, source="live", reward=1.0)
        run = step(somebody, samples=0, outcome="no_op", reward_mean=1.0, advantage_abs_mean=0.1**number)
    values = reading(run).values
    assert values["length_ratio"] == 6.0
    assert values["repetition"] == pytest.approx(1 - 4 / 117)
    assert values["advantage_abs_mean"] == pytest.approx(0.001)
    crossed = {c.measure: c.action for c in Crossing.objects.all()}
    assert crossed == {"length_ratio": "alert", "repetition": "pause", "reward_same": "alert"}
    assert "replies grow: a judge may be pleased by length" in run.reason
    same = Crossing.objects.get(measure="reward_same")
    assert same.words.startswith(
        "the share of the commonest of the last rewards is 1, over the bound of 0.98: nearly all"
    )
    assert "(mean 1)" in same.words


def test_several_passes_over_a_batch_show(somebody: Somebody) -> None:
    run = step(somebody, clip_fraction=0.45)
    assert "several passes over one batch" in run.reason
    assert [c.measure for c in Crossing.objects.all()] == ["clip_fraction"]


def test_a_policy_with_wrong_bounds_is_refused_by_name_and_held_to_the_defaults(somebody: Somebody) -> None:
    from apps.learning.config import resolve

    with pytest.raises(InvalidInput) as refused:
        resolve({"drift": {"ess": {"limit": 7}}})
    assert refused.value.field == "config.drift.ess.limit"
    assert resolve({"drift": {"ess": {"limit": 0.5}}}) == resolve({})
    somebody.policy.config = {"drift": {"ess": {"limit": 7}}}
    assert readings.bounds_of(somebody.policy)["ess"].limit == 0.4


def test_the_database_refuses_what_must_not_be(somebody: Somebody) -> None:
    step(somebody, rollout_k3=0.9)
    crossing = Crossing.objects.select_related("reading").get()
    row = crossing.reading
    bad: list[Any] = [
        lambda: Crossing.objects.create(
            policy=somebody.policy,
            reading=row,
            measure="rollout_k3",
            value=1,
            bound=1,
            action="alert",
            words="x",
        ),
        lambda: Crossing.objects.update(cleared_at=timezone.now()),
        lambda: Crossing.objects.update(action="explode"),
        lambda: Crossing.objects.update(words=""),
        lambda: DriftReading.objects.create(
            policy=somebody.policy, gauge=row.gauge, run=row.run, fence=row.fence
        ),
        lambda: DriftReading.objects.create(policy=somebody.policy, gauge=row.gauge),
        lambda: DriftReading.objects.update(gauge="fuel"),
        lambda: TrainingPause.objects.create(policy=somebody.policy, reason="again", actor="x"),
        lambda: TrainingPause.objects.update(resumed_at=timezone.now()),
        lambda: TrainingPause.objects.update(reason=""),
    ]
    for change in bad:
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


# --- the second and third gauge ---


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
