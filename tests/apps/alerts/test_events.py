"""What becomes an alert: a pointer that moves, a version refused, a run that failed."""

import uuid

from django.db import transaction

from apps.adapters import publishing
from apps.adapters.models import VersionState
from apps.adapters.services import point
from apps.alerts.models import Alert, Delivery
from apps.learning.endings import close
from apps.learning.models import RunState, TrainingRun
from tests.tenants import Somebody, add_version
from workers.alerts import deliver


def test_a_move_of_the_live_pointer_is_told(somebody: Somebody) -> None:
    version = add_version(somebody.policy, 1, live=False)
    with transaction.atomic():
        point(policy=somebody.policy, version=version, actor="user:1", reason="it is better")
    told = Alert.objects.get()
    assert (told.event, told.severity, told.version_id) == ("version.live", "info", version.pk)
    assert told.words == "default answers from version 1 now, before from the bare base: it is better"
    assert told.data == {"policy": "default", "from": 0, "to": 1}
    assert Delivery.objects.count() == 0  # good news is not mailed


def test_a_refused_version_is_told_once(somebody: Somebody) -> None:
    version = add_version(somebody.policy, 1, live=False)
    version.state = VersionState.CREATED
    version.save()
    for _ in range(2):
        assert publishing.publish(version.pk).outcome == "refused"
    told = Alert.objects.get()
    assert (told.event, told.severity, told.run_id) == ("version.refused", "warning", version.run_id)
    assert told.words.startswith("Version 1 of default did not pass its checks: preflight: ")
    assert [row.recipient for row in Delivery.objects.all()] == [somebody.user.email]


def test_a_failed_run_is_told_and_one_that_ended_otherwise_is_not(somebody: Somebody) -> None:
    for state in (RunState.CANCELLED, RunState.NO_OP, RunState.FAILED):
        run = TrainingRun.objects.create(policy=somebody.policy, trigger="clock")
        with transaction.atomic():
            close(run, state, "the disk is full")
    told = Alert.objects.get()
    assert (told.event, told.run_id) == ("run.failed", run.pk)
    assert told.words == "A training run of default failed: the disk is full"
    with transaction.atomic():
        close(run, RunState.FAILED, "the disk is full")  # resumed meanwhile
    assert [one.run_id for one in Alert.objects.all()] == [run.pk, run.pk]


def test_the_task_of_another_tenant_sends_nothing(somebody: Somebody) -> None:
    run = TrainingRun.objects.create(policy=somebody.policy, trigger="clock")
    with transaction.atomic():
        close(run, RunState.FAILED, "no")
    row = Delivery.objects.get()
    deliver(tenant_id=str(uuid.uuid4()), delivery_id=str(row.pk))
    row.refresh_from_db()
    assert row.attempts == 0
    deliver(tenant_id=str(somebody.tenant.id), delivery_id=str(row.pk))
    row.refresh_from_db()
    assert row.state == "delivered"
