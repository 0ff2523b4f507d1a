"""Gauges read at a step's end, and what a crossing does, once."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.alerts.models import Alert
from apps.conversations.models import Turn
from apps.learning import commits, runs, schedule
from apps.learning.drift import pauses, readings
from apps.learning.drift.models import Crossing, DriftReading, TrainingPause
from apps.learning.models import Sample
from apps.learning.runs import cancel_run, claim_run, request_run
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.learning.drifting import CALM, alerts, configure, reading, result, step
from tests.apps.learning.ledger import add_samples, add_turn, queue_run, states_of, unsent
from tests.tenants import Somebody


@pytest.fixture(autouse=True)
def _scope(somebody: Somebody) -> Any:
    with tenant_scope(somebody.tenant.id):
        yield


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
    assert values["repetition"] == pytest.approx((1 - 4 / 117) / 2)  # with as many of the step before
    assert values["advantage_abs_mean"] == pytest.approx(0.001)
    crossed = {c.measure: c.action for c in Crossing.objects.all()}
    assert crossed == {"length_ratio": "alert", "repetition": "pause", "reward_same": "alert"}
    assert "replies grow: a judge may be pleased by length" in run.reason
    same = Crossing.objects.get(measure="reward_same")
    assert same.words.startswith(
        "the share of the commonest of the last rewards is 1, over the bound of 0.98: nearly all"
    )
    assert "(mean 1)" in same.words


def test_one_reply_that_loops_stops_nobody(somebody: Somebody) -> None:
    """The clock calls for runs of a sample or two: what replies are like is read from the newest of several."""

    def reply(tokens: list[int]) -> None:
        turn = add_turn(somebody, output_ids=tokens, output_logprobs=[-0.5] * len(tokens))
        Sample.objects.create(policy=somebody.policy, turn=turn, source="live", reward=1.0)

    looping, plain = [7, 8, 9, 10] * 30, [*range(100, 120)]
    reply(looping)
    assert {"repetition", "length_ratio"} & set(
        reading(step(somebody, samples=0, outcome="no_op", trigger="operator:1")).values
    ) == set()
    for _ in range(3):
        for _ in range(7):
            reply(plain)
        step(somebody, samples=0, outcome="no_op", trigger="operator:1")
    reply(looping)
    values = reading(step(somebody, samples=0, outcome="no_op", trigger="operator:1")).values
    assert values["repetition"] == pytest.approx((1 - 4 / 117) / 16)
    assert "length_ratio" not in values
    assert pauses.why_paused(somebody.policy.id) == ""

    for _ in range(5):  # six of sixteen by then
        reply(looping)
        step(somebody, samples=0, outcome="no_op", trigger="operator:1")
    assert pauses.why_paused(somebody.policy.id) == ""
    reply(looping)
    step(somebody, samples=0, outcome="no_op", trigger="operator:1")
    assert "replies repeat themselves" in pauses.why_paused(somebody.policy.id)


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
