"""What the broker loses is found again by its row; what is late is not announced for ever."""

import datetime as dt
import uuid

import pytest
import redis
from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, VersionState
from apps.conversations.models import Session, Turn, TurnState
from apps.judging.models import Judgement, OptOut
from apps.learning import runs, schedule
from apps.learning.models import Sample, TrainingRun
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, add_turn, queue_run, settle, states_of, unsent
from tests.tenants import Somebody, add_somebody, add_version
from workers import upkeep
from workers.app import app
from workers.judging import judge_turn
from workers.samples import make_sample

JUDGE = "workers.judging.judge_turn"
SAMPLE = "workers.samples.make_sample"
TRAIN = "workers.training.train"
PUBLISH = "workers.publishing.publish"
LONG_AGO = dt.timedelta(minutes=5)


def age(turn: Turn) -> Turn:
    with tenant_scope(turn.tenant_id):
        then = timezone.now() - LONG_AGO
        Turn.objects.filter(id=turn.id).update(completed_at=then)
        Turn.objects.filter(id=turn.id, next_state_at__isnull=False).update(next_state_at=then)
    return turn


def lose_messages() -> None:
    """Everything was sent, and the broker lost it."""
    with system_scope("tests"):
        OutboxMessage.objects.update(sent_at=timezone.now())


def turns_of(task: str) -> list[str]:
    return [message.kwargs["turn_id"] for message in unsent(task)]


def test_a_lost_judging_is_announced_again_and_one_that_is_fresh_or_done_is_not(
    somebody: Somebody, valkey: redis.Redis
) -> None:
    lost, fresh, done, held = (
        age(add_turn(somebody)),
        add_turn(somebody),
        age(add_turn(somebody)),
        age(add_turn(somebody)),
    )
    settle(done)
    with tenant_scope(somebody.tenant.id):
        Judgement.objects.create(
            turn=held, judge="x", prompt_version="1", claimed_until=timezone.now() + dt.timedelta(minutes=1)
        )
    upkeep.find_lost_work()
    upkeep.find_lost_work()
    assert turns_of(JUDGE) == [str(lost.id)]
    assert str(fresh.id) not in turns_of(JUDGE)


def test_turns_of_which_all_is_said_and_that_have_no_sample_get_one(
    somebody: Somebody, valkey: redis.Redis
) -> None:
    settled = age(add_turn(somebody))
    settle(settled)
    aborted = age(add_turn(somebody, state=TurnState.ABORTED, next_state=None, next_state_at=None))
    over = age(add_turn(somebody, next_state=None, next_state_at=None))
    open_ = age(add_turn(somebody, next_state=None, next_state_at=None))
    with tenant_scope(somebody.tenant.id):
        over.session.idle_at = timezone.now()
        over.session.save()
    upkeep.find_lost_work()
    assert turns_of(SAMPLE) == [str(settled.id), str(aborted.id), str(over.id)]
    for turn_id in turns_of(SAMPLE):
        make_sample(tenant_id=str(somebody.tenant.id), turn_id=turn_id)
    with tenant_scope(somebody.tenant.id):
        reasons = dict(Sample.objects.values_list("turn_id", "reason"))
    assert reasons == {settled.id: "", aborted.id: "aborted", over.id: "no next state"}
    assert open_.id not in reasons
    lose_messages()
    upkeep.find_lost_work()
    assert turns_of(SAMPLE) == []


def test_while_the_queue_is_long_nothing_is_announced_again(somebody: Somebody, valkey: redis.Redis) -> None:
    age(add_turn(somebody))
    valkey.rpush("judge", *["{}"] * upkeep.ENOUGH)
    upkeep.find_lost_work()
    assert turns_of(JUDGE) == []


def test_a_lost_run_and_a_lost_version_are_announced_again(somebody: Somebody, valkey: redis.Redis) -> None:
    version = add_version(somebody.policy, live=False)
    run = queue_run(somebody)
    lose_messages()
    upkeep.find_lost_work()
    assert (unsent(TRAIN), unsent(PUBLISH)) == ([], [])
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.update(state=VersionState.CREATED, created_at=timezone.now() - LONG_AGO)
        TrainingRun.objects.update(created_at=timezone.now() - LONG_AGO)
    upkeep.find_lost_work()
    assert [message.kwargs["run_id"] for message in unsent(TRAIN)] == [str(run.id)]
    assert [message.kwargs["version_id"] for message in unsent(PUBLISH)] == [str(version.id)]


def test_a_silent_worker_loses_its_run(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        assert runs.claim_run(run_id=run.id) is not None
    upkeep.expire_leases()
    assert states_of(somebody) == {"claimed": 8}
    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.update(lease_until=timezone.now() - dt.timedelta(seconds=1))
    upkeep.expire_leases()
    assert states_of(somebody) == {"ready": 8}


def test_a_batch_that_nobody_started_is_started_by_the_clock(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    upkeep.start_runs()
    upkeep.start_runs()
    assert len(unsent(TRAIN)) == 1


def test_one_policys_fault_keeps_no_other_from_its_step(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = add_somebody("others")
    for one in (somebody, others):
        add_samples(one, 8)
    consider = schedule.consider

    def fails_for_the_first(*, policy_id: uuid.UUID) -> TrainingRun | None:
        if policy_id == somebody.policy.id:
            raise KeyError("its rows make no sense")
        return consider(policy_id=policy_id)

    monkeypatch.setattr(schedule, "consider", fails_for_the_first)
    upkeep.start_runs()
    assert [message.tenant_id for message in unsent(TRAIN)] == [others.tenant.id]


def test_the_tasks_judge_and_sample_and_their_repetition_is_one_effect(somebody: Somebody) -> None:
    turn = add_turn(
        somebody,
        next_state=[{"role": "user", "content": "That's far too long for me. One short sentence is plenty."}],
    )
    tenant_id, turn_id = str(somebody.tenant.id), str(turn.id)
    for _ in range(2):
        judge_turn(tenant_id=tenant_id, turn_id=turn_id)
        make_sample(tenant_id=tenant_id, turn_id=turn_id)
    with tenant_scope(somebody.tenant.id):
        sample = Sample.objects.get()
        assert Judgement.objects.count() == 1
    assert (sample.state, sample.reward) == ("ready", -1.0)
    assert [hint["text"] for hint in sample.hints] == ["Answer in one short sentence."]


def test_a_turn_of_which_no_sample_can_be_made_says_so(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = add_turn(somebody)

    def broken(*, turn_id: object) -> None:
        raise KeyError(turn_id)

    monkeypatch.setattr("apps.learning.samples.make_sample", broken)
    make_sample(tenant_id=str(somebody.tenant.id), turn_id=str(turn.id))
    with tenant_scope(somebody.tenant.id):
        assert Sample.objects.get().reason.startswith("error: KeyError")


def test_another_tenants_rows_are_out_of_a_tasks_reach(somebody: Somebody) -> None:
    from tests.tenants import add_somebody

    other = add_somebody("other")
    turn = add_turn(somebody)
    judge_turn(tenant_id=str(other.tenant.id), turn_id=str(turn.id))
    make_sample(tenant_id=str(other.tenant.id), turn_id=str(turn.id))
    with system_scope("tests"), transaction.atomic():
        assert (Judgement.objects.count(), Sample.objects.count()) == (0, 0)


def test_every_message_and_every_clock_names_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    names = {JUDGE, SAMPLE, TRAIN, PUBLISH, *(entry["task"] for entry in app.conf.beat_schedule.values())}
    assert names <= set(app.tasks)
    assert {entry["options"]["queue"] for entry in app.conf.beat_schedule.values()} == {"ops"}
    assert (app.conf.task_acks_late, app.conf.worker_prefetch_multiplier, app.conf.timezone) == (
        True,
        1,
        "UTC",
    )


def test_what_is_put_to_no_judge_is_not_announced_for_ever_and_gets_its_reason(
    somebody: Somebody, valkey: redis.Redis
) -> None:
    edited, opted_out = age(add_turn(somebody, reply_edited=True)), age(add_turn(somebody))
    other = add_somebody(tenant=somebody.tenant)
    with tenant_scope(somebody.tenant.id):
        Session.objects.filter(id=opted_out.session_id).update(user=other.user)
        OptOut.objects.create(tenant=somebody.tenant, user=other.user, actor="user:1")
    upkeep.find_lost_work()
    assert turns_of(JUDGE) == []
    assert sorted(turns_of(SAMPLE)) == sorted([str(edited.id), str(opted_out.id)])


def test_one_silent_run_that_cannot_be_put_back_keeps_no_other_from_it(somebody: Somebody) -> None:
    others = add_somebody("others")
    queued = [queue_run(one) for one in (somebody, others)]
    for one, run in zip((somebody, others), queued, strict=True):
        add_samples(one, 8)
        with tenant_scope(one.tenant.id):
            assert runs.claim_run(run_id=run.id) is not None
            TrainingRun.objects.update(lease_until=timezone.now() - LONG_AGO)
    with tenant_scope(somebody.tenant.id):
        # claimed under bounds that the platform has narrowed since
        TrainingRun.objects.update(config={"attempts": 1000})
    upkeep.expire_leases()
    assert [states_of(one) for one in (somebody, others)] == [{"claimed": 8}, {"ready": 8}]
