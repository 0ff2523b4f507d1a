"""Leases go by the database's clock: a worker whose own is wrong neither takes nor keeps what is not its."""

import datetime as dt

import pytest
from django.conf import settings
from django.utils import timezone

from apps.learning import fairness, runs, upkeep
from apps.learning.models import RunState, TrainingRun
from kernel import clock
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, queue_run
from tests.tenants import Somebody

HOURS = [dt.timedelta(hours=-2), dt.timedelta(hours=2)]


@pytest.fixture
def held(somebody: Somebody) -> TrainingRun:
    add_samples(somebody, 2)
    return queue_run(somebody, "operator:1")


def put_clock(monkeypatch: pytest.MonkeyPatch, wrong: dt.timedelta) -> None:
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + wrong)


@pytest.mark.parametrize("wrong", HOURS)
def test_a_wrong_clock_takes_no_run_that_is_held(
    somebody: Somebody, held: TrainingRun, monkeypatch: pytest.MonkeyPatch, wrong: dt.timedelta
) -> None:
    with tenant_scope(somebody.tenant.id):
        claim = runs.claim_run(run_id=held.id)
        assert claim is not None

        put_clock(monkeypatch, wrong)
        assert runs.claim_run(run_id=held.id) is None
        assert runs.expire_leases() == 0
        assert runs.heartbeat(run_id=held.id, fence=claim.fence)
        held.refresh_from_db()
        assert (held.state, held.fence) == (RunState.RUNNING, claim.fence)
    with system_scope("tests"):
        assert fairness.next_runs(limit=5) == []


@pytest.mark.parametrize("wrong", HOURS)
def test_what_a_wrong_clock_holds_others_leave_alone_until_its_lease_is_over(
    somebody: Somebody, held: TrainingRun, monkeypatch: pytest.MonkeyPatch, wrong: dt.timedelta
) -> None:
    with tenant_scope(somebody.tenant.id):
        with monkeypatch.context() as wrongly:
            put_clock(wrongly, wrong)
            claim = runs.claim_run(run_id=held.id)
            assert claim is not None
            assert runs.heartbeat(run_id=held.id, fence=claim.fence)
        before = clock.now()
        held.refresh_from_db()
        assert held.lease_until is not None
        assert before < held.lease_until <= before + dt.timedelta(seconds=settings.LEASE_S)
        assert runs.claim_run(run_id=held.id) is None
        assert runs.expire_leases() == 0
        TrainingRun.objects.update(lease_until=before - dt.timedelta(seconds=1))
        assert runs.expire_leases() == 1
        assert upkeep.queued_runs() == 1
