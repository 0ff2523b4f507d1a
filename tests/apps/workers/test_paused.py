"""Nothing of a paused tenant begins, nothing is lost, and it goes on when resumed."""

import datetime as dt
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from apps.accounts.pausing import pause_tenant, resume_tenant
from apps.judging import services as judging
from apps.judging import upkeep as judging_upkeep
from apps.judging.models import Judgement, JudgementState
from apps.learning import fairness, runs
from apps.learning import upkeep as learning_upkeep
from apps.learning.models import RunState, Sample, TrainingRun
from apps.learning.shadow.due import candidates
from apps.learning.shadow.plan import Wave, next_wave
from apps.memory import services as memory
from kernel.errors import Forbidden
from kernel.models import OutboxMessage
from kernel.outbox import WAITING_TASKS
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, add_turn, queue_run, settle, states_of
from tests.tenants import Somebody, add_somebody
from workers.app import app
from workers.judging import judge_turn, rejudge
from workers.relay import relay_once
from workers.samples import make_sample
from workers.training import _claim_next

JUDGE = "workers.judging.judge_turn"
SAMPLE = "workers.samples.make_sample"
REJUDGE = "workers.judging.rejudge"


class Broker:
    """Takes messages."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []

    def __call__(self, *, task: str, queue: str, kwargs: dict[str, Any], message_id: str) -> None:
        self.taken.append((task, kwargs["tenant_id"]))


def pause(somebody: Somebody) -> None:
    pause_tenant(tenant_id=somebody.tenant.pk, reason="unpaid bills", actor="user:1")


def resume(somebody: Somebody) -> None:
    resume_tenant(tenant_id=somebody.tenant.pk, reason="paid", actor="user:1")


def relayed() -> list[tuple[str, str]]:
    broker = Broker()
    relay_once(broker)
    return broker.taken


def of(somebody: Somebody, *tasks: str) -> list[tuple[str, str]]:
    return [(task, str(somebody.tenant.pk)) for task in tasks]


def waits(*tasks: str) -> bool:
    """Whether exactly these are announced and unsent."""
    with system_scope("tests"):
        rows = OutboxMessage.objects.filter(sent_at=None).order_by("id").values_list("task", flat=True)
        return list(rows) == list(tasks)


def test_what_was_announced_stays_in_the_outbox_until_it_is_resumed(somebody: Somebody) -> None:
    other = add_somebody("other")
    for one in (somebody, other):
        turn = add_turn(one)
        with tenant_scope(one.tenant.pk), transaction.atomic():
            judging.ask_for_judgement(turn_id=turn.pk, tenant_id=one.tenant.pk)
            judging.ask_for_sample(turn_id=turn.pk, tenant_id=one.tenant.pk)
    pause(somebody)
    assert relayed() == of(other, JUDGE, SAMPLE)
    assert relayed() == []
    resume(somebody)
    assert relayed() == of(somebody, JUDGE, SAMPLE)


def test_a_turn_whose_message_is_under_way_is_judged_after_the_pause(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    pause(somebody)
    told = {"tenant_id": str(somebody.tenant.pk), "turn_id": str(turn.pk)}
    judge_turn(**told)
    judge_turn(**told)
    assert waits(JUDGE)
    with tenant_scope(somebody.tenant.pk):
        assert not Judgement.objects.exists()
    assert relayed() == []
    resume(somebody)
    assert relayed() == of(somebody, JUDGE)
    judge_turn(**told)
    with tenant_scope(somebody.tenant.pk):
        assert Judgement.objects.get().state == JudgementState.SETTLED


def test_a_reward_whose_message_is_under_way_is_counted_after_the_pause(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn)
    pause(somebody)
    told = {"tenant_id": str(somebody.tenant.pk), "turn_id": str(turn.pk)}
    make_sample(**told)
    assert waits(SAMPLE)
    assert states_of(somebody) == {}
    resume(somebody)
    assert relayed() == of(somebody, SAMPLE)
    make_sample(**told)
    with tenant_scope(somebody.tenant.pk):
        assert Sample.objects.get().reward == -1


def test_a_window_is_judged_again_after_the_pause(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn)
    now = timezone.now()
    hour = dt.timedelta(hours=1)
    with tenant_scope(somebody.tenant.pk):
        asked = judging.rejudge_window(
            policy=somebody.policy, since=now - hour, until=now + hour, actor="user:1"
        )
    assert relayed() == of(somebody, REJUDGE)
    pause(somebody)
    told = {"tenant_id": str(somebody.tenant.pk), "rejudging_id": str(asked.pk)}
    rejudge(**told)
    with tenant_scope(somebody.tenant.pk):
        assert Judgement.objects.count() == 1
    assert waits(REJUDGE)
    assert relayed() == []
    resume(somebody)
    rejudge(**told)
    with tenant_scope(somebody.tenant.pk):
        assert Judgement.objects.count() == 2


def test_no_run_is_started_or_claimed_and_a_queued_one_keeps_its_place(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    pause(somebody)
    assert _claim_next() == []
    assert fairness.next_runs(limit=16) == []
    with tenant_scope(somebody.tenant.pk):
        assert runs.claim_run(run_id=run.pk) is None
        run.refresh_from_db()
    assert (run.state, run.reason, run.attempts) == (RunState.QUEUED, "", 0)
    with system_scope("tests"):
        assert learning_upkeep.queued_runs() == 0
    assert states_of(somebody) == {"ready": 8}
    resume(somebody)
    with system_scope("tests"):
        assert learning_upkeep.queued_runs() == 1
        assert learning_upkeep.announce_queued(older_than_s=0) == 1
    claims = _claim_next()
    assert [(claim.run.pk, len(claim.samples)) for claim in claims] == [(run.pk, 8)]


def test_what_waits_calls_for_no_step_until_it_is_resumed(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.pk):
        somebody.policy.config = {"batch_size": 8}
        somebody.policy.save()
    pause(somebody)
    with system_scope("tests"):
        assert learning_upkeep.start_due_runs() == 0
    with tenant_scope(somebody.tenant.pk), pytest.raises(Forbidden) as refused:
        runs.request_run(policy=somebody.policy, actor="user:1")
    assert refused.value.code == "tenant_paused"
    with tenant_scope(somebody.tenant.pk):
        assert not TrainingRun.objects.exists()
    resume(somebody)
    with system_scope("tests"):
        assert learning_upkeep.start_due_runs() == 1


def test_a_run_whose_worker_went_silent_waits_too(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.pk):
        assert runs.claim_run(run_id=run.pk) is not None
        TrainingRun.objects.update(lease_until=timezone.now() - dt.timedelta(seconds=1))
    pause(somebody)
    assert _claim_next() == []
    with system_scope("tests"):
        assert runs.expire_leases() == 1
    with tenant_scope(somebody.tenant.pk):
        run.refresh_from_db()
        assert run.state == RunState.QUEUED
        assert runs.claim_run(run_id=run.pk) is None
    assert states_of(somebody) == {"ready": 8}


def test_no_shadow_reply_is_written(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.pk):
        memory.add_preference(
            policy_id=somebody.policy.pk,
            user_id=somebody.user.pk,
            end_user=None,
            text="Answer in one short sentence.",
            actor="test",
        )

    def wave() -> Wave | str:
        with tenant_scope(somebody.tenant.pk):
            somebody.policy.refresh_from_db()
            return next_wave(somebody.policy)

    pause(somebody)
    assert wave() == "the tenant is paused: unpaid bills"
    with system_scope("tests"):
        assert candidates() == []
    resume(somebody)
    assert isinstance(wave(), Wave)
    with system_scope("tests"):
        assert candidates() == [(somebody.tenant.pk, somebody.policy.pk)]


def test_what_looks_lost_is_not_asked_for_while_it_waits(somebody: Somebody) -> None:
    add_turn(somebody)
    settle(add_turn(somebody))

    def found() -> tuple[int, int]:
        with system_scope("tests"):
            return (
                judging_upkeep.ask_for_unjudged(older_than_s=-1, limit=10),
                learning_upkeep.ask_for_unsampled(older_than_s=-1, limit=10),
            )

    pause(somebody)
    assert found() == (0, 0)  # else it would stand before everybody else's
    resume(somebody)
    assert found() == (1, 1)


def test_every_task_that_waits_is_one() -> None:
    app.loader.import_default_modules()
    assert [task for task in WAITING_TASKS if task not in app.tasks] == []
