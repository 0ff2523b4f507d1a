"""Which samples of a policy's rows make a batch, what staleness does to them, and wishes for runs."""

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import Tenant
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import TurnKind, TurnState
from apps.learning import commits, refusals, runs, schedule
from apps.learning.commits import StepResult
from apps.learning.drift import pauses
from apps.learning.lineage import Lineage, trajectory_staleness
from apps.learning.models import RewardBaseline, Sample, SampleState, TrainingRun
from apps.learning.runs import Claim
from apps.learning.selectors import left_out, stale
from apps.learning.waiting import under_way
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.artefacts import write_files
from tests.apps.learning.ledger import add_samples, add_turn, made, queue_run, states_of, unsent
from tests.tenants import Somebody, add_somebody, add_version


def configure(somebody: Somebody, **config: object) -> None:
    somebody.policy.config = config
    with tenant_scope(somebody.tenant.id):
        somebody.policy.save()


def numbers(samples: list[Sample], claim: Claim) -> list[int]:
    """Return which of the given samples a claim took, by their place in the list."""
    places = {sample.id: number for number, sample in enumerate(samples)}
    return [places[sample.id] for sample in claim.samples]


def claim(somebody: Somebody, trigger: str = "operator:1") -> Claim:
    run = queue_run(somebody, trigger)
    with tenant_scope(somebody.tenant.id):
        taken = runs.claim_run(run_id=run.id)
    assert taken is not None
    return taken


def lineage(somebody: Somebody, count: int) -> list[AdapterVersion]:
    """Make versions 1 to `count`, each from the one before; the last is live."""
    versions: list[AdapterVersion] = []
    for number in range(1, count + 1):
        versions.append(add_version(somebody.policy, number, parent=versions[-1] if versions else None))
    return versions


def test_strict_waits_for_a_turn_that_is_under_way_and_the_others_do_not(somebody: Somebody) -> None:
    before = add_samples(somebody, 2)
    pending = add_turn(somebody, state=TurnState.PENDING, next_state=None, next_state_at=None)
    samples = [*before, *add_samples(somebody, 6)]
    configure(somebody, order="strict", batch_size=4)
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        assert schedule.consider(policy_id=somebody.policy.id) is None
    taken = claim(somebody)
    assert numbers(samples, taken) == [0, 1]
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=taken.run.id, actor="user:1")
        # it ends without anything to teach: whatever is behind it is free
        pending.state = TurnState.FAILED
        pending.save()
    assert numbers(samples, claim(somebody)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"order": "windowed", "buffer": 10, "window": 0.3},
            [0, 1],
        ),  # three places: the slow one and two more
        ({"order": "windowed", "buffer": 64, "window": 0.3}, [0, 1, 2, 3]),
        ({"order": "greedy"}, [0, 1, 2, 3]),
        ({"order": "strict"}, []),
    ],
)
def test_a_slow_turn_holds_up_what_is_outside_its_window(
    somebody: Somebody, config: dict[str, object], expected: list[int]
) -> None:
    slow = add_turn(somebody, kind=TurnKind.ROLLOUT, next_state=None, next_state_at=None)
    samples = add_samples(somebody, 6)
    configure(somebody, batch_size=4, **config)
    with tenant_scope(somebody.tenant.id):
        found = schedule.pick(
            somebody.policy, runs.resolve(somebody.policy.config), Lineage(somebody.policy.live)
        )
        assert [samples.index(sample) for sample in found] == expected
        # a rollout is over when its session is
        slow.session.idle_at = timezone.now()
        slow.session.save()
        assert not under_way(somebody.policy.id).exists()
    assert numbers(samples, claim(somebody)) == [0, 1, 2, 3]


def test_what_was_taken_keeps_its_place_until_the_oldest_is_gone(somebody: Somebody) -> None:
    slow = add_turn(somebody, state=TurnState.PENDING, next_state=None, next_state_at=None)
    samples = add_samples(somebody, 6)
    configure(somebody, batch_size=4, order="windowed", buffer=4, window=1.0, attempts=9)
    taken = claim(somebody)
    assert numbers(samples, taken) == [0, 1, 2]
    with tenant_scope(somebody.tenant.id):
        commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken)))
        AdapterVersion.objects.update(state="ready")
        run = queue_run(somebody, "operator:1")
        assert runs.claim_run(run_id=run.id) is None
        slow.state = TurnState.ABORTED
        slow.save()
    assert numbers(samples, claim(somebody)) == [3, 4, 5]


@pytest.mark.parametrize("order", ["strict", "windowed"])
def test_what_was_dropped_in_between_hides_nothing_behind_it(somebody: Somebody, order: str) -> None:
    samples = add_samples(somebody, 60)
    with tenant_scope(somebody.tenant.id):
        gone = [sample.id for sample in samples[1:50]]
        Sample.objects.filter(id__in=gone).update(
            state=SampleState.DROPPED, reason="stale: 9 steps, at most 4"
        )
    configure(somebody, batch_size=4, order=order)
    assert numbers(samples, claim(somebody, "threshold")) == [0, 50, 51, 52]


def test_turns_that_hold_nothing_up(somebody: Somebody) -> None:
    lost = add_turn(somebody, state=TurnState.PENDING, id=_id_of(timezone.now() - dt.timedelta(hours=2)))
    add_turn(somebody, side=True, state=TurnState.PENDING)
    add_turn(somebody, kind=TurnKind.EVALUATION, state=TurnState.PENDING)
    add_turn(somebody, next_state=None, next_state_at=None)  # nobody answered yet: nothing is at work on it
    add_turn(somebody, state=TurnState.FAILED)
    add_samples(somebody, 1)
    judged_soon = add_turn(somebody)
    with tenant_scope(somebody.tenant.id):
        assert list(under_way(somebody.policy.id)) == [judged_soon]
    assert lost.state == TurnState.PENDING


def test_a_batch_prefers_rewards_that_the_policy_is_not_used_to(somebody: Somebody) -> None:
    samples = add_samples(somebody, 12)
    with tenant_scope(somebody.tenant.id):
        RewardBaseline.objects.create(policy=somebody.policy, state={"mean": 1.0, "count": 9.0})
        Sample.objects.update(hints=[], reward=1.0)
        loud = [samples[place].id for place in (7, 9, 10, 11)]
        Sample.objects.filter(id__in=loud).update(reward=-1.0)
    configure(somebody, batch_size=4)
    assert numbers(samples, claim(somebody)) == [0, 7, 9, 10]


def test_past_the_bound_samples_may_count_less_instead_and_both_are_counted(somebody: Somebody) -> None:
    versions = lineage(somebody, 9)
    for version in (versions[0], versions[3], versions[6]):  # 8, 5 and 2 steps back
        add_samples(somebody, 1, version=version)
    configure(somebody, past_staleness="down_weight", max_staleness=4)
    taken = claim(somebody)
    assert [(sample.staleness, sample.weight) for sample in taken.samples] == [
        (8, 0.0625),
        (5, 0.5),
        (2, 1.0),
    ]
    with tenant_scope(somebody.tenant.id):
        run = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert run.metrics["down_weighted"] == 2
        assert stale(somebody.policy.id) == {"dropped": 0, "down_weighted": 2}

    configure(somebody, max_staleness=4)
    add_samples(somebody, 1, version=versions[0])
    with tenant_scope(somebody.tenant.id):
        schedule.prune(somebody.policy, runs.resolve(somebody.policy.config))
        assert stale(somebody.policy.id) == {"dropped": 1, "down_weighted": 2}
        assert left_out(somebody.policy.id) == {"stale: 8 steps, at most 4": 1}


def test_a_released_sample_counts_fully_again(somebody: Somebody) -> None:
    versions = lineage(somebody, 7)
    add_samples(somebody, 1, version=versions[0])
    configure(somebody, past_staleness="down_weight", max_staleness=4)
    taken = claim(somebody)
    assert taken.samples[0].weight == 0.25
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=taken.run.id, actor="user:1")
        assert Sample.objects.values_list("weight", "staleness").get() == (1.0, None)
        with pytest.raises(IntegrityError), transaction.atomic():
            Sample.objects.update(weight=0.0)


def test_a_rollout_over_several_versions_is_as_old_as_its_first_turn_and_each_turn_as_its_own(
    somebody: Somebody,
) -> None:
    versions = lineage(somebody, 6)
    first = add_turn(somebody, version=versions[2], kind=TurnKind.ROLLOUT)
    for version in (versions[3], versions[4]):
        add_turn(somebody, version=version, kind=TurnKind.ROLLOUT, session=first.session)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.refresh_from_db()
        turns, whole = trajectory_staleness(first.session_id, Lineage(somebody.policy.live))
    assert (turns, whole) == ([3, 2, 1], 3)


def test_a_wish_makes_one_run_at_a_time(somebody: Somebody) -> None:
    add_samples(somebody, 2)
    with tenant_scope(somebody.tenant.id):
        run = runs.request_run(policy=somebody.policy, actor="key:abc")
        assert run.trigger == "key:abc"
        with pytest.raises(Conflict) as error:
            runs.request_run(policy=somebody.policy, actor="key:abc")
        assert error.value.code == "run_under_way"
        assert TrainingRun.objects.count() == 1
        assert AuditEntry.objects.filter(action="run.request").count() == 1


def test_a_wish_without_samples_or_without_training_is_refused(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(Conflict) as error:
            runs.request_run(policy=somebody.policy, actor="user:7")
        assert (error.value.code, error.value.message) == (
            "no_samples",
            "no sample of default waits: there is nothing to learn",
        )
        add_samples(somebody, 1)
        Policy.objects.update(training_enabled=False)
        somebody.policy.refresh_from_db()
        with pytest.raises(Conflict) as error:
            runs.request_run(policy=somebody.policy, actor="user:7")
        assert error.value.code == "training_off"
        assert (TrainingRun.objects.count(), AuditEntry.objects.filter(action="run.request").count()) == (
            0,
            0,
        )


def test_a_failed_run_is_resumed_with_all_its_tries(somebody: Somebody) -> None:
    add_samples(somebody, 3)
    configure(somebody, attempts=1)
    taken = claim(somebody)
    with tenant_scope(somebody.tenant.id):
        runs.hand_back(run_id=taken.run.id, fence=taken.fence, reason="out of memory")
        failed = TrainingRun.objects.get()
        assert (failed.state, failed.attempts) == ("failed", 1)
        resumed = runs.resume_run(run_id=failed.id, actor="user:7")
        assert (resumed.state, resumed.attempts, resumed.finished_at, resumed.fence) == ("queued", 0, None, 1)
        with pytest.raises(Conflict):
            runs.resume_run(run_id=failed.id, actor="user:7")
        assert len(unsent("workers.training.train")) == 1
        again = runs.claim_run(run_id=failed.id)
        assert again is not None
        assert (again.fence, len(again.samples)) == (2, 3)
        with pytest.raises(runs.LeaseLost):
            commits.commit_run(run_id=failed.id, fence=1, result=made(taken, "x", "y"))


def test_a_run_is_not_resumed_beside_another_or_for_nothing(somebody: Somebody) -> None:
    add_samples(somebody, 1)
    first = queue_run(somebody, "operator:1")
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=first.id, actor="user:7")
        second = queue_run(somebody, "operator:1")
        with pytest.raises(Conflict) as error:
            runs.resume_run(run_id=first.id, actor="user:7")
        assert error.value.code == "run_under_way"
        first.refresh_from_db()
        assert first.state == "cancelled"
        runs.cancel_run(run_id=second.id, actor="user:7")
        Sample.objects.update(state="dropped", reason="x")
        with pytest.raises(Conflict) as error:
            runs.resume_run(run_id=first.id, actor="user:7")
        assert error.value.code == "no_samples"


def test_a_run_is_not_resumed_where_training_is_off_or_paused(somebody: Somebody) -> None:
    add_samples(somebody, 1)
    run = queue_run(somebody, "operator:1")
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=run.id, actor="user:7")
        pauses.pause(policy_id=somebody.policy.id, actor="user:7", reason="a look")
        with pytest.raises(Conflict) as error:
            runs.resume_run(run_id=run.id, actor="user:7")
        assert error.value.code == "training_paused"
        pauses.resume(policy_id=somebody.policy.id, actor="user:7", reason="it is well")
        somebody.policy.training_enabled = False
        somebody.policy.save()
        with pytest.raises(Conflict) as error:
            runs.resume_run(run_id=run.id, actor="user:7")
        assert error.value.code == "training_off"
        run.refresh_from_db()
    assert run.state == "cancelled"


def test_samples_of_refused_steps_come_back_when_they_are_replayed_and_others_stay(
    somebody: Somebody,
) -> None:
    add_samples(somebody, 8)
    configure(somebody, refusals=1)
    result = StepResult(outcome="refused", code="not_finite", reason="the loss is not finite")
    taken = claim(somebody)
    with tenant_scope(somebody.tenant.id):
        commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=result)
        stays = add_samples(somebody, 1)[0]
        # it was in a refused step, but that is not why it was dropped
        Sample.objects.filter(id=stays.id).update(
            state=SampleState.DROPPED, reason="stale: 9 steps, at most 4", refusals=1
        )
        aside = refusals.set_aside(somebody.policy.id)
        assert len(aside) == 8
        assert refusals.replay(policy=somebody.policy, actor="user:7", sample_ids=[aside[0].id]) == 1
        assert refusals.replay(policy=somebody.policy, actor="user:7", sample_ids=[stays.id]) == 0
        assert refusals.replay(policy=somebody.policy, actor="user:7") == 7
        assert refusals.replay(policy=somebody.policy, actor="user:7") == 0
        details = (
            AuditEntry.objects.filter(action="samples.replay").order_by("id").values_list("detail", flat=True)
        )
        assert list(details) == [{"samples": 1}, {"samples": 7}]
        assert set(Sample.objects.filter(state="ready").values_list("refusals", "reason")) == {(0, "")}
    assert states_of(somebody) == {"ready": 8, "dropped": 1}


def test_the_default_temperature_follows_the_batches_within_the_tenants_bounds(somebody: Somebody) -> None:
    add_samples(somebody, 16)  # all of them -1: nothing tells replies apart
    configure(somebody, exploration="adapt", temperature_high=0.72, temperature_step=0.05)
    taken = claim(somebody)
    with tenant_scope(somebody.tenant.id):
        result = StepResult(outcome="no_op", code="no_signal", reason="nothing", metrics={"ess": 0.9})
        run = commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=result)
        assert run.metrics["exploration"] == {
            "before": 0.7,
            "temperature": 0.72,
            "reason": "rewards are alike: variance 0.00",
        }
        assert Policy.objects.get().temperature == 0.72
        entry = AuditEntry.objects.get(action="policy.temperature")
        assert (entry.actor, entry.detail["from"], entry.detail["to"]) == ("system:exploration", 0.7, 0.72)


def test_the_default_temperature_stays_where_nobody_asked_for_exploration(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    taken = claim(somebody)
    with tenant_scope(somebody.tenant.id):
        run = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=StepResult(outcome="no_op", code="x", reason="y")
        )
        assert "exploration" not in run.metrics
        assert Policy.objects.get().temperature == 0.7
    configure(somebody, temperature_low=1.0, temperature_high=0.5)
    with pytest.raises(InvalidInput) as error:
        runs.resolve(somebody.policy.config)
    assert error.value.field == "config.temperature_low"


def test_a_tenant_that_takes_an_old_name_learns_nothing_of_who_had_it(somebody: Somebody) -> None:
    add_version(somebody.policy)
    add_samples(somebody, 8)
    with system_scope("tests"):
        Tenant.objects.filter(id=somebody.tenant.id).update(slug="acme-before")
    again = add_somebody("acme")
    assert (again.policy.name, again.policy.live_id) == (somebody.policy.name, None)
    with tenant_scope(again.tenant.id):
        run = queue_run(again, "operator:1")
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
        assert run.reason == "no samples wait"
        assert (Sample.objects.count(), AdapterVersion.objects.count()) == (0, 0)
    assert states_of(somebody) == {"ready": 8}


def _id_of(moment: dt.datetime) -> object:
    from kernel.ids import first_id_at

    return first_id_at(moment)


def sources(taken: Claim) -> list[str]:
    return [sample.source for sample in taken.samples]


def due(somebody: Somebody, *, quiet: bool = False) -> str | None:
    with tenant_scope(somebody.tenant.id):
        return schedule.due(somebody.policy, runs.resolve(somebody.policy.config), quiet=quiet)


def test_a_batch_is_of_peoples_own_samples_or_of_shadow_ones(somebody: Somebody) -> None:
    """A version of the second sort may come to nothing; what people said is not in it."""
    configure(somebody, batch_size=4)
    add_samples(somebody, 3)
    add_samples(somebody, 3, source="shadow")
    assert due(somebody) is None  # six are no batch
    add_samples(somebody, 1, source="shadow")
    assert due(somebody) == "threshold"
    taken = claim(somebody, "threshold")
    assert sources(taken) == ["shadow"] * 4
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=taken.run.id, actor="user:1")
    add_samples(somebody, 1)
    assert sources(claim(somebody, "threshold")) == ["live"] * 4


def long_waited(samples: list[Sample]) -> None:
    with system_scope("tests"):
        waited = Sample.objects.filter(pk__in=[sample.pk for sample in samples])
        waited.update(created_at=timezone.now() - dt.timedelta(seconds=700))


@pytest.mark.parametrize("trigger", ["clock", "operator:1"])
def test_of_less_than_a_batch_peoples_own_go_first(somebody: Somebody, trigger: str) -> None:
    configure(somebody, batch_size=4, flush_s=600)
    long_waited(add_samples(somebody, 4, source="shadow"))
    long_waited(add_samples(somebody, 2))
    taken = claim(somebody, trigger)
    assert sources(taken) == ["live", "live"]
    with tenant_scope(somebody.tenant.id):
        runs.cancel_run(run_id=taken.run.id, actor="user:1")
        Sample.objects.filter(source="live").update(state=SampleState.DROPPED, reason="test")
    assert sources(claim(somebody, trigger)) == ["shadow"] * 4


def test_the_clock_takes_the_sort_that_waited(somebody: Somebody) -> None:
    """What a person said just now goes on waiting for more of its kind."""
    configure(somebody, batch_size=4, flush_s=600)
    long_waited(add_samples(somebody, 2, source="shadow"))
    own = add_samples(somebody, 1)
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        run = schedule.consider(policy_id=somebody.policy.id)
        assert run is not None
        assert run.trigger == "clock"
        # nobody takes it for a while, and by then the other sort has waited, too
        TrainingRun.objects.update(created_at=timezone.now() - dt.timedelta(seconds=150))
        long_waited(own)
        Sample.objects.filter(source="shadow").update(created_at=timezone.now() - dt.timedelta(seconds=800))
        taken = runs.claim_run(run_id=run.id)
        assert taken is not None
        assert sources(taken) == ["shadow", "shadow"]
        runs.cancel_run(run_id=run.id, actor="user:1")
    long_waited(own)
    assert due(somebody) == "clock"
    assert sources(claim(somebody, "clock")) == ["live"]


def test_what_did_not_wait_long_is_not_taken_instead_of_what_is_gone(somebody: Somebody) -> None:
    configure(somebody, batch_size=4, flush_s=600)
    long_waited(add_samples(somebody, 2, source="shadow"))
    add_samples(somebody, 1)
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        run = schedule.consider(policy_id=somebody.policy.id)
        assert run is not None
        Sample.objects.filter(source="shadow").update(state=SampleState.DROPPED, reason="test")
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
        assert (run.state, run.reason) == ("no_op", "what it was for waits no more")
    assert states_of(somebody) == {"dropped": 2, "ready": 1}


def test_a_whole_batch_of_neither_sort_is_none(somebody: Somebody) -> None:
    configure(somebody, batch_size=4)
    add_samples(somebody, 3)
    add_samples(somebody, 3, source="shadow")
    run = queue_run(somebody, "threshold")
    with tenant_scope(somebody.tenant.id):
        assert runs.claim_run(run_id=run.id) is None
        assert TrainingRun.objects.get().reason == "3 samples wait, a batch is 4"


def test_shadow_steps_do_not_make_peoples_own_samples_too_old(somebody: Somebody) -> None:
    """They wait for more of their kind until one step more would drop them."""
    versions = lineage(somebody, 4)
    configure(somebody, batch_size=4, max_staleness=2)
    add_samples(somebody, 1, version=versions[2])
    add_samples(somebody, 4, version=versions[3], source="shadow")
    assert due(somebody) == "threshold"
    assert due(somebody, quiet=True) == "threshold"
    with tenant_scope(somebody.tenant.id):
        Sample.objects.filter(source="live").update(version=versions[1])
    assert due(somebody) == "clock"
    with tenant_scope(somebody.tenant.id):
        Sample.objects.filter(source="shadow").delete()
    assert due(somebody) is None  # without shadow replies they wait as ever
    assert due(somebody, quiet=True) == "clock"
    taken = claim(somebody, "clock")
    assert [(sample.source, sample.staleness) for sample in taken.samples] == [("live", 2)]
