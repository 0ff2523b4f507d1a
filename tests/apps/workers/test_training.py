"""The training task with a child that does as it is told: made, dead, hung, stopped."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pytest_django import Settings

from apps.adapters.models import AdapterVersion, VersionState
from apps.learning import runs
from apps.learning.models import Sample, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, queue_run, runs_of, states_of, unsent
from tests.apps.workers.trainers import Fake, train_run
from tests.tenants import Somebody, add_somebody
from workers.training import train_next


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    yield fake
    fake.process.end()


def train(somebody: Somebody, run: TrainingRun, fake: Fake) -> TrainingRun:
    with tenant_scope(somebody.tenant.id):
        train_run(run_id=run.id, trainer=fake.process)
        run.refresh_from_db()
    return run


def test_a_step_is_made_and_committed(somebody: Somebody, fake: Fake) -> None:
    samples = add_samples(somebody, 8)
    run = train(somebody, queue_run(somebody), fake)

    assert (run.state, run.reason) == ("succeeded", "the step is made")
    assert fake.seen() == [[str(sample.id) for sample in samples]]
    assert run.metrics["loss"] == 0.5
    with tenant_scope(somebody.tenant.id):
        version = AdapterVersion.objects.get()
        assert Sample.objects.filter(outcome__parts=["opd"]).count() == 8
    assert version.path.split("/")[:2] == [str(somebody.tenant.id), str(somebody.policy.id)]
    assert states_of(somebody) == {"consumed": 8}
    assert len(unsent("workers.publishing.publish")) == 1


def test_the_task_delivered_again_does_nothing(somebody: Somebody, fake: Fake) -> None:
    add_samples(somebody, 16)
    run = queue_run(somebody)
    train(somebody, run, fake)
    train(somebody, run, fake)
    assert len(fake.seen()) == 1
    assert states_of(somebody) == {"consumed": 8, "ready": 8}


@pytest.mark.parametrize("mode", ["die", "die_after_write", "junk", "internal"])
def test_a_child_that_fails_leaves_the_run_queued_and_the_samples_free(
    somebody: Somebody, fake: Fake, mode: str
) -> None:
    add_samples(somebody, 8)
    fake.orders(mode=mode)
    run = train(somebody, queue_run(somebody), fake)
    assert (run.state, run.attempts) == ("queued", 1)
    assert states_of(somebody) == {"ready": 8}
    with tenant_scope(somebody.tenant.id):
        assert AdapterVersion.objects.count() == 0

    fake.orders(mode="made")
    run = train(somebody, run, fake)
    assert (run.state, run.attempts) == ("succeeded", 2)
    assert states_of(somebody) == {"consumed": 8}


def test_a_child_that_hangs_is_ended_at_the_deadline(somebody: Somebody, fake: Fake) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"deadline_s": 1}
        somebody.policy.save()
    fake.orders(mode="hang")
    run = train(somebody, queue_run(somebody), fake)
    assert (run.state, run.reason) == ("queued", "the trainer took too long")
    assert fake.process.pid is None


def test_a_request_that_breaks_the_contract_is_a_refusal(somebody: Somebody, fake: Fake) -> None:
    add_samples(somebody, 8)
    fake.orders(mode="bad_request")
    run = train(somebody, queue_run(somebody), fake)
    assert (run.state, run.reason) == ("failed", "said so")
    with tenant_scope(somebody.tenant.id):
        assert set(Sample.objects.values_list("refusals", flat=True)) == {1}
    assert states_of(somebody) == {"ready": 8}


def test_a_cancelled_run_ends_the_step(somebody: Somebody, fake: Fake, settings: Settings) -> None:
    settings.LEASE_S = 1.0
    add_samples(somebody, 8)
    fake.orders(mode="hang")
    run = queue_run(somebody)
    asked = False

    def cancel_at_the_first_progress(_: object) -> str:
        nonlocal asked
        if fake.seen() and not asked:
            asked = True
            runs.cancel_run(run_id=run.id, actor="user:1")
        return "" if runs.heartbeat(run_id=run.id, fence=1) else "the lease is lost"

    with tenant_scope(somebody.tenant.id), pytest.MonkeyPatch.context() as patched:
        patched.setattr("workers.training.LeaseKeeper", lambda _claims: cancel_at_the_first_progress)
        train_run(run_id=run.id, trainer=fake.process)
    assert [(row.state, row.reason) for row in runs_of(somebody)] == [("cancelled", "cancelled by user:1")]
    assert states_of(somebody) == {"ready": 8}
    assert fake.process.pid is None


def test_a_worker_that_is_told_to_stop_puts_the_run_down_at_once(somebody: Somebody, fake: Fake) -> None:
    add_samples(somebody, 8)
    fake.orders(mode="hang")

    def stop_when_it_works() -> None:
        while not fake.seen():
            time.sleep(0.05)
        fake.process.end()

    stopper = threading.Thread(target=stop_when_it_works)
    stopper.start()
    started = time.monotonic()
    run = train(somebody, queue_run(somebody), fake)
    stopper.join()
    assert time.monotonic() - started < 30
    assert (run.state, run.attempts) == ("queued", 0)
    assert states_of(somebody) == {"ready": 8}
    assert fake.process.pid is None


def test_a_sample_that_the_contract_does_not_take_is_set_aside_and_the_others_are_trained(
    somebody: Somebody, fake: Fake
) -> None:
    samples = add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        turn = samples[3].turn
        turn.sampling = {"temperature": 99.0}
        turn.save()
    run = train(somebody, queue_run(somebody), fake)
    assert run.state == "succeeded"
    assert [len(seen) for seen in fake.seen()] == [7]
    with tenant_scope(somebody.tenant.id):
        left = Sample.objects.get(state="dropped")
    assert left.turn_id == turn.id
    assert left.reason.startswith("not taken: SampleInput.temperature")


def test_the_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    import subprocess
    import sys

    fake = Fake(tmp_path)
    fake.orders(mode="hang")
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'workers.leash', str(os.getpid()), '--', sys.executable, '-c', "
        "'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    until = time.monotonic() + 20
    while "workers.leash" in " ".join(child.cmdline()) and time.monotonic() < until:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_message_only_wakes_and_the_run_whose_turn_it_is_is_taken(
    somebody: Somebody, fake: Fake, settings: Settings
) -> None:
    settings.FAIR_QUANTUM_S = 10.0
    other = add_somebody("other")
    for _ in range(2):
        add_samples(somebody, 8)
    add_samples(other, 8)
    train(somebody, queue_run(somebody), fake)
    named, waits = queue_run(somebody), queue_run(other)
    with system_scope("tests"):
        AdapterVersion.objects.update(state=VersionState.REFUSED)
    assert train_next(trainer=fake.process)
    with system_scope("tests"):
        states = dict(TrainingRun.objects.values_list("id", "state"))
    assert (states[named.id], states[waits.id]) == ("queued", "succeeded")
    assert train_next(trainer=fake.process)
    assert not train_next(trainer=fake.process)
    assert states_of(somebody) == {"consumed": 16}
    assert states_of(other) == {"consumed": 8}
