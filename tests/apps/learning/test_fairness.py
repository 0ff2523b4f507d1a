"""Which run a free trainer takes, and that tenants pay for what they used, in Postgres."""

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone
from pytest_django import Settings

from apps.adapters.models import Policy
from apps.learning import commits, fairness, runs, schedule
from apps.learning.commits import StepResult
from apps.learning.models import RunState, TrainerAccount, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, queue_run
from tests.tenants import BASE_MODEL, Somebody, add_somebody


@pytest.fixture(autouse=True)
def _numbers(settings: Settings) -> None:
    settings.FAIR_QUANTUM_S = 10.0
    settings.FAIR_DEBT_S = 100.0


def order(limit: int = 100) -> list[str]:
    """Return the tenants' slugs in the order in which a trainer would take their runs."""
    from apps.accounts.models import Tenant

    with system_scope("tests"):
        slugs = dict(Tenant.objects.values_list("id", "slug"))
    return [slugs[one.tenant_id] for one in fairness.next_runs(limit=limit)]


def queue_many(somebody: Somebody, count: int) -> list[TrainingRun]:
    """Queue a run of each of `count` policies."""
    found = []
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        for number in range(count):
            policy, _ = Policy.objects.get_or_create(name=f"p{number}", defaults={"base_model": BASE_MODEL})
            run = schedule.create_run(policy, "operator:1")
            assert run is not None
            found.append(run)
    return found


def account(somebody: Somebody) -> TrainerAccount:
    with tenant_scope(somebody.tenant.id):
        return TrainerAccount.objects.get()


def finish(somebody: Somebody, run: TrainingRun, seconds: float) -> TrainingRun:
    """Claim a run and end it without a version after so many trainer seconds."""
    with tenant_scope(somebody.tenant.id):
        taken = runs.claim_run(run_id=run.id)
        assert taken is not None
        result = StepResult(outcome="no_op", code="x", reason="nothing", trainer_s=seconds)
        return commits.commit_run(run_id=run.id, fence=taken.fence, result=result)


def test_the_queue_of_a_flooding_tenant_does_not_come_before_anothers_one_run(db: None) -> None:
    flood, quiet = add_somebody("flood"), add_somebody("quiet")
    queue_many(flood, 60)
    add_samples(quiet, 8)
    mine = queue_run(quiet)

    assert order(limit=4) == ["flood", "quiet", "flood", "flood"]
    add_samples(flood, 8)
    finish(flood, queue_run(flood), 8.0)
    assert fairness.next_runs(limit=1) == [fairness.Next(quiet.tenant.id, mine.id)]


def test_a_tenant_that_used_more_waits_until_its_quanta_have_paid(db: None) -> None:
    greedy, modest = add_somebody("greedy"), add_somebody("modest")
    add_samples(greedy, 8)
    finish(greedy, queue_run(greedy), 35.0)
    queue_many(greedy, 2)
    queue_many(modest, 4)
    assert (account(greedy).deficit_s, account(greedy).used_s) == (-25.0, 35.0)
    # each of modest's is expected to cost a quantum: three of them before greedy's debt is paid
    assert order() == ["modest", "modest", "modest", "greedy", "modest", "greedy"]
    # to look changes nothing where somebody could be served at once
    assert account(greedy).deficit_s == -25.0


def test_rounds_that_pass_are_credited_to_every_waiting_tenant(db: None) -> None:
    one, two = add_somebody("one"), add_somebody("two")
    for somebody, deficit in ((one, -25.0), (two, -45.0)):
        queue_many(somebody, 1)
        with tenant_scope(somebody.tenant.id):
            TrainerAccount.objects.create(deficit_s=deficit)
    assert order() == ["one", "two"]
    assert (account(one).deficit_s, account(two).deficit_s) == (5.0, -15.0)
    assert order() == ["one", "two"]
    assert (account(one).deficit_s, account(two).deficit_s) == (5.0, -15.0)


def test_only_runs_that_can_be_had_are_offered(somebody: Somebody) -> None:
    first, second, third, fourth = queue_many(somebody, 4)
    now = timezone.now()
    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.filter(id=first.id).update(available_at=now + dt.timedelta(seconds=60))
        TrainingRun.objects.filter(id=second.id).update(
            state=RunState.RUNNING, lease_until=now + dt.timedelta(seconds=60)
        )
        TrainingRun.objects.filter(id=third.id).update(
            state=RunState.RUNNING, lease_until=now - dt.timedelta(seconds=1)
        )
    assert [one.run_id for one in fairness.next_runs(limit=9)] == [third.id, fourth.id]
    assert len(fairness.next_runs(limit=1)) == 1


def test_a_run_that_is_tried_again_later_is_not_offered_before(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = runs.claim_run(run_id=run.id)
        assert taken is not None
        result = StepResult(outcome="failed", code="no_space", reason="no space left")
        commits.commit_run(run_id=run.id, fence=taken.fence, result=result)
    assert fairness.next_runs(limit=9) == []
    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.update(available_at=timezone.now() - dt.timedelta(seconds=1))
    assert [one.run_id for one in fairness.next_runs(limit=9)] == [run.id]


@pytest.mark.parametrize("ending", ["hand_back", "put_down", "cancel", "expire"])
def test_an_attempt_that_came_to_nothing_is_charged_too(somebody: Somebody, ending: str) -> None:
    add_samples(somebody, 8)
    run = queue_run(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = runs.claim_run(run_id=run.id)
        assert taken is not None
        begun = timezone.now() - dt.timedelta(seconds=7)
        TrainingRun.objects.update(started_at=begun)
        if ending == "hand_back":
            runs.hand_back(run_id=run.id, fence=1, reason="died")
        elif ending == "put_down":
            runs.put_down(run_id=run.id, fence=1)
        elif ending == "cancel":
            runs.cancel_run(run_id=run.id, actor="user:1")
        else:
            # the last heartbeat came five seconds after the claim; the silence after it is nobody's use
            TrainingRun.objects.update(
                started_at=begun - dt.timedelta(seconds=105), lease_until=begun - dt.timedelta(seconds=40)
            )
            assert runs.expire_leases() == 1
        run.refresh_from_db()
    spent = {"expire": 5.0}.get(ending, 7.0)
    assert round(run.trainer_s) == spent
    assert account(somebody).used_s == run.trainer_s
    assert account(somebody).deficit_s == 10.0 - run.trainer_s


def test_what_tenants_paid_is_the_sum_of_what_their_runs_cost(somebody: Somebody) -> None:
    for seconds in (3.0, 4.5):
        add_samples(somebody, 8)
        finish(somebody, queue_run(somebody), seconds)
    with tenant_scope(somebody.tenant.id):
        assert TrainingRun.objects.aggregate(n=Sum("trainer_s"))["n"] == 7.5
    row = account(somebody)
    assert (row.used_s, row.deficit_s, row.typical_s) == (7.5, 2.5, 3.375)
    assert row.served_at is not None


def test_a_tenant_has_one_account(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        TrainerAccount.objects.create(deficit_s=1.0)
        with pytest.raises(IntegrityError), transaction.atomic():
            TrainerAccount.objects.create(deficit_s=1.0)
        with pytest.raises(IntegrityError), transaction.atomic():
            TrainerAccount.objects.update(used_s=-1.0)
        queue_many(somebody, 1)
        with pytest.raises(IntegrityError), transaction.atomic():
            TrainingRun.objects.update(trainer_s=-1.0)
