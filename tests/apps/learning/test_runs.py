"""Claim, lease, fence, commit: a sample is consumed by at most one committed step."""

import datetime as dt
from dataclasses import replace

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from apps.adapters.models import AdapterVersion, VersionState
from apps.adapters.services import point
from apps.adapters.store import StoreError
from apps.learning import commits, runs, schedule
from apps.learning.commits import StepResult
from apps.learning.drift.models import Crossing, DriftReading
from apps.learning.drift.pauses import resume
from apps.learning.models import RewardBaseline, RunState, Sample, SampleState, TrainingRun
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.artefacts import write_files
from tests.apps.learning.ledger import add_samples, made, queue_run, runs_of, states_of, unsent
from tests.tenants import Somebody, add_version

PUBLISH = "workers.publishing.publish"
TRAIN = "workers.training.train"


def claim(somebody: Somebody, run: TrainingRun) -> runs.Claim:
    taken = runs.claim_run(run_id=run.id)
    assert taken is not None
    return taken


def expire(run: TrainingRun) -> None:
    TrainingRun.objects.filter(id=run.id).update(lease_until=timezone.now() - dt.timedelta(seconds=1))


def test_of_forty_samples_a_batch_of_sixteen_is_taken_oldest_first(somebody: Somebody) -> None:
    samples = add_samples(somebody, 40)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"batch_size": 16}
        somebody.policy.save()
        taken = claim(somebody, queue_run(somebody))

    assert [sample.id for sample in taken.samples] == [sample.id for sample in samples[:16]]
    assert states_of(somebody) == {"claimed": 16, "ready": 24}
    assert taken.run.config["batch_size"] == 16


def test_a_commit_makes_version_consumption_baseline_and_wish_to_publish_true_at_once(
    somebody: Somebody,
) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        result = made(taken, *write_files(taken))
        run = commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=result)

        version = AdapterVersion.objects.get()
        assert (run.state, run.version, run.lease_until) == (RunState.SUCCEEDED, version, None)
        assert (version.number, version.depth, version.parent, version.state) == (
            1,
            1,
            None,
            VersionState.CREATED,
        )
        assert (version.run_id, version.sha256) == (run.id, result.files.sha256 if result.files else None)
        assert RewardBaseline.objects.get().state["mean"] == -1.0
        assert {sample.outcome["parts"][0] for sample in Sample.objects.all()} == {"opd"}
        assert all(sample.staleness == 0 and sample.run_id == run.id for sample in Sample.objects.all())
    assert states_of(somebody) == {"consumed": 8}
    assert [message.kwargs["version_id"] for message in unsent(PUBLISH)] == [str(version.id)]


@pytest.mark.parametrize(("source", "epochs"), [("shadow", 3), ("live", 1)])
def test_a_batch_of_shadow_replies_is_gone_through_more_than_once(
    somebody: Somebody, source: str, epochs: int
) -> None:
    add_samples(somebody, 8, source=source)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        assert (taken.config.epochs, taken.config.shadow_epochs) == (epochs, 3)
        kept = TrainingRun.objects.get().config
    assert (kept["epochs"], kept["shadow_epochs"]) == (epochs, 3)


def test_an_old_fence_commits_nothing(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        old = claim(somebody, run)
        expire(run)
        new = claim(somebody, run)
        assert (old.fence, new.fence) == (1, 2)

        with pytest.raises(runs.LeaseLost):
            commits.commit_run(run_id=run.id, fence=old.fence, result=made(old, *write_files(old)))
        assert not runs.heartbeat(run_id=run.id, fence=old.fence)
        assert AdapterVersion.objects.count() == 0
        assert states_of(somebody) == {"claimed": 8}

        commits.commit_run(run_id=run.id, fence=new.fence, result=made(new, *write_files(new)))
        with pytest.raises(runs.LeaseLost):
            commits.commit_run(run_id=run.id, fence=new.fence, result=made(new, "x", "y"))
        assert AdapterVersion.objects.count() == 1
    assert states_of(somebody) == {"consumed": 8}


def test_a_live_lease_cannot_be_taken_and_a_heartbeat_extends_it(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, run)
        assert runs.claim_run(run_id=run.id) is None
        expire(run)
        assert runs.heartbeat(run_id=run.id, fence=taken.fence, progress={"phase": "learn"})
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
        assert run.progress == {"phase": "learn"}


def test_an_expired_lease_frees_the_samples_and_queues_the_run_again(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        claim(somebody, run)
        expire(run)
    with system_scope("upkeep"):
        assert runs.expire_leases() == 1
        assert runs.expire_leases() == 0
    assert states_of(somebody) == {"ready": 8}
    assert [(row.state, row.reason) for row in runs_of(somebody)] == [("queued", "its worker went silent")]
    assert len(unsent(TRAIN)) == 1


def test_a_run_that_kills_every_worker_fails_and_quarantines_its_samples_in_the_end(
    somebody: Somebody,
) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"attempts": 2, "refusals": 2}
        somebody.policy.save()
        for expected in ({"ready": 8}, {"dropped": 8}):
            run = queue_run(somebody)
            for _ in range(2):
                taken = claim(somebody, run)
                runs.hand_back(run_id=run.id, fence=taken.fence, reason="out of memory")
            run.refresh_from_db()
            assert (run.state, run.reason) == ("failed", "gave up after 2 attempts: out of memory")
            assert states_of(somebody) == expected
        assert Sample.objects.values_list("reason", flat=True).distinct().get() == (
            "quarantined: after 2 refused steps: out of memory"
        )


def test_put_down_does_not_count_as_an_attempt(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        for _ in range(6):
            taken = claim(somebody, run)
            runs.put_down(run_id=run.id, fence=taken.fence)
        run.refresh_from_db()
    assert (run.state, run.attempts, run.fence) == ("queued", 0, 6)
    assert states_of(somebody) == {"ready": 8}


def test_a_policy_has_one_open_run(somebody: Somebody) -> None:
    queue_run(somebody)
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        assert schedule.create_run(somebody.policy, "clock") is None
    assert len(runs_of(somebody)) == 1


def test_a_step_without_signal_makes_no_version_and_drops_its_samples(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        result = StepResult(
            outcome="no_op", code="lr_zero", reason="the learning rate is 0", baseline={"mean": -1.0}
        )
        run = commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=result)
        assert (run.state, run.version, run.reason) == ("no_op", None, "the learning rate is 0")
        assert AdapterVersion.objects.count() == 0
        assert set(Sample.objects.values_list("reason", flat=True)) == {"not taken: the learning rate is 0"}
    assert states_of(somebody) == {"dropped": 8}
    assert unsent(PUBLISH) == []


def test_a_refused_step_frees_its_samples_once_and_quarantines_them_the_second_time(
    somebody: Somebody,
) -> None:
    add_samples(somebody, 8)
    result = StepResult(outcome="refused", code="not_finite", reason="the loss is not finite")
    with tenant_scope(somebody.tenant.id):
        for expected in ({"ready": 8}, {"dropped": 8}):
            taken = claim(somebody, queue_run(somebody))
            run = commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=result)
            assert (run.state, run.reason) == ("failed", "the loss is not finite")
            assert states_of(somebody) == expected


def test_a_failed_step_is_tried_again_later_and_frees_its_samples_when_it_gives_up(
    somebody: Somebody,
) -> None:
    add_samples(somebody, 8)
    result = StepResult(outcome="failed", code="no_space", reason="no space left on the device")
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"attempts": 2}
        somebody.policy.save()
        run = queue_run(somebody)
        states = []
        for _ in range(2):
            taken = claim(somebody, run)
            run = commits.commit_run(run_id=run.id, fence=taken.fence, result=result)
            states.append((run.state, run.reason))
        assert states == [("queued", result.reason), ("failed", result.reason)]
        assert states_of(somebody) == {"ready": 8}
        # and the next run does not follow at once
        with transaction.atomic():
            assert schedule.consider(policy_id=somebody.policy.id) is None
        TrainingRun.objects.update(finished_at=timezone.now() - dt.timedelta(hours=1))
        with transaction.atomic():
            assert schedule.consider(policy_id=somebody.policy.id) is not None


def test_files_that_are_not_what_the_trainer_said_make_no_version(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        directory, _ = write_files(taken)
        with pytest.raises(StoreError):
            commits.commit_run(
                run_id=taken.run.id, fence=taken.fence, result=made(taken, directory, "0" * 64)
            )
        assert AdapterVersion.objects.count() == 0
    assert states_of(somebody) == {"claimed": 8}


def test_a_version_made_while_the_policy_moved_is_thrown_away(somebody: Somebody) -> None:
    version = add_version(somebody.policy)
    add_samples(somebody, 8, version=None)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        assert taken.parent == version
        with transaction.atomic():
            policy = type(somebody.policy).objects.select_for_update(of=("self",)).get(id=somebody.policy.id)
            point(policy=policy, version=None, actor="user:1", reason="rolled back")
        run = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert (run.state, run.version) == ("cancelled", None)
        assert AdapterVersion.objects.count() == 1
        # the samples are of the base and still good: the next run takes them
        assert [row.state for row in TrainingRun.objects.order_by("created_at")] == ["cancelled", "queued"]
    assert states_of(somebody) == {"ready": 8}


def test_after_a_rollback_the_samples_of_the_branch_left_behind_are_ineligible(somebody: Somebody) -> None:
    v5 = add_version(somebody.policy, 5)
    v6 = add_version(somebody.policy, 6, parent=v5)
    v7 = add_version(somebody.policy, 7, parent=v6)
    add_samples(somebody, 3, version=v5)
    add_samples(somebody, 2, version=v6)
    add_samples(somebody, 2, version=v7)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.live = v5
        somebody.policy.save()
        taken = claim(somebody, queue_run(somebody, "operator:1"))
        assert {sample.version_id for sample in taken.samples} == {v5.id}
        assert [sample.staleness for sample in taken.samples] == [0, 0, 0]
        left = Sample.objects.filter(state=SampleState.INELIGIBLE)
        assert {sample.reason for sample in left} == {"other branch"}
        assert {sample.version_id for sample in left} == {v6.id, v7.id}


def test_a_sample_past_the_staleness_bound_is_dropped_with_the_reason(somebody: Somebody) -> None:
    versions: list[AdapterVersion] = []
    for number in range(1, 7):
        versions.append(add_version(somebody.policy, number, parent=versions[-1] if versions else None))
    add_samples(somebody, 1, version=versions[0])
    add_samples(somebody, 1, version=versions[1])
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody, "operator:1"))
        assert [sample.staleness for sample in taken.samples] == [4]
        dropped = Sample.objects.get(state=SampleState.DROPPED)
    assert (dropped.reason, dropped.staleness) == ("stale: 5 steps, at most 4", 5)


def test_a_run_waits_until_the_version_before_it_is_published(somebody: Somebody) -> None:
    add_samples(somebody, 16)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        commits.commit_run(run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken)))
        with transaction.atomic():
            assert schedule.consider(policy_id=somebody.policy.id) is None
        AdapterVersion.objects.update(state=VersionState.REFUSED)
        with transaction.atomic():
            assert schedule.consider(policy_id=somebody.policy.id) is not None


def test_an_operator_may_ask_for_a_run_and_cancel_it_and_both_are_audited(somebody: Somebody) -> None:
    add_samples(somebody, 2)
    with tenant_scope(somebody.tenant.id):
        run = runs.request_run(policy=somebody.policy, actor="user:7")
        with pytest.raises(Conflict):
            runs.request_run(policy=somebody.policy, actor="user:7")
        taken = claim(somebody, run)
        assert len(taken.samples) == 2
        runs.cancel_run(run_id=run.id, actor="user:7")
        assert not runs.heartbeat(run_id=run.id, fence=taken.fence)
        with pytest.raises(runs.LeaseLost):
            commits.commit_run(run_id=run.id, fence=taken.fence, result=made(taken, "x", "y"))
        with pytest.raises(Conflict):
            runs.cancel_run(run_id=run.id, actor="user:7")
        actions = AuditEntry.objects.filter(target=f"run:{run.id}").values_list("action", flat=True)
        assert sorted(actions) == ["run.cancel", "run.request"]
    assert states_of(somebody) == {"ready": 2}


def test_a_run_that_finds_nothing_says_so(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        # they were there when it was asked for, and somebody else's words took them away since
        run = queue_run(somebody, "operator:7")
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
    assert (run.state, run.reason) == ("no_op", "no samples wait")


def test_training_switched_off_cancels_what_waits(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.training_enabled = False
        somebody.policy.save()
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "training is switched off")
    assert states_of(somebody) == {"ready": 8}


def test_a_wrong_configuration_is_refused_by_name(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        for config, field in (
            ({"lr": 2}, "config.lr"),
            ({"speed": 1}, "config.speed"),
            ({"method": "x"}, "config.method"),
        ):
            somebody.policy.config = config
            somebody.policy.save()
            with pytest.raises(InvalidInput) as error:
                runs.request_run(policy=somebody.policy, actor="user:7")
            assert error.value.field == field
        assert TrainingRun.objects.count() == 0


def test_the_clock_takes_a_smaller_batch_after_the_flush_time(somebody: Somebody, settings: Settings) -> None:
    settings.TRAINING_FLUSH_S = 60.0
    add_samples(somebody, 3)
    with tenant_scope(somebody.tenant.id):
        with transaction.atomic():
            assert schedule.consider(policy_id=somebody.policy.id) is None
        Sample.objects.update(created_at=timezone.now() - dt.timedelta(seconds=61))
        with transaction.atomic():
            run = schedule.consider(policy_id=somebody.policy.id)
        assert run is not None
        assert run.trigger == "clock"
        assert len(claim(somebody, run).samples) == 3


def test_a_run_that_was_refused_and_is_resumed_can_end_well(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    metrics = {"rollout_k3": 20.0, "loss": 0.5}  # past its bound: a crossing, and a pause
    refused = StepResult(
        outcome="refused", code="rollout_kl", reason="another policy's replies", metrics=metrics
    )
    with tenant_scope(somebody.tenant.id):
        run = queue_run(somebody)
        taken = claim(somebody, run)
        commits.commit_run(run_id=run.id, fence=taken.fence, result=refused)
        resume(policy_id=somebody.policy.id, actor="user:1", reason="looked at")
        runs.resume_run(run_id=run.id, actor="user:1")
        taken = claim(somebody, run)
        ended = commits.commit_run(
            run_id=run.id,
            fence=taken.fence,
            result=replace(made(taken, *write_files(taken)), metrics=metrics),
        )
        assert ended.state == RunState.SUCCEEDED
        readings = DriftReading.objects.filter(run=run, gauge="rollout_learner").order_by("fence")
        assert [reading.fence for reading in readings] == [1, 2]
        assert [one.cleared_by for one in Crossing.objects.order_by("created_at")] == [
            "resumed by user:1",
            "",
        ]
    assert states_of(somebody) == {"consumed": 8}
