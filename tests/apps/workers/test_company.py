"""Small runs of several policies in one line to the child: each ends as it would alone."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.adapters.models import AdapterVersion
from apps.learning import commits, runs
from apps.learning.models import Sample, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, queue_run, states_of
from tests.apps.workers.trainers import Fake
from tests.tenants import Somebody, add_somebody
from workers.leases import LeaseKeeper
from workers.training import train_next


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    yield fake
    fake.process.end()


@pytest.fixture
def people(db: None) -> Callable[[int], list[Somebody]]:
    """Tenants with one small sample each, and a run for it."""

    def make(count: int) -> list[Somebody]:
        found = [add_somebody(f"tenant{number}") for number in range(count)]
        for one in found:
            configure(one, batch_size=1)
            add_samples(one, 1)
        return found

    return make


def configure(somebody: Somebody, **config: Any) -> None:
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = config
        somebody.policy.save()


def ended(queued: list[TrainingRun]) -> list[tuple[str, int]]:
    """State and attempts of each."""
    with system_scope("tests"):
        found = {run.id: (run.state, run.attempts) for run in TrainingRun.objects.all()}
    return [found[run.id] for run in queued]


def test_small_runs_share_a_line_and_are_committed_one_by_one(people: Any, fake: Fake) -> None:
    tenants = people(3)
    queued = [queue_run(one) for one in tenants]
    assert train_next(trainer=fake.process)
    assert fake.lines() == [[str(run.id) for run in queued]]
    assert ended(queued) == [("succeeded", 1)] * 3
    for one, run in zip(tenants, queued, strict=True):
        assert states_of(one) == {"consumed": 1}
        with tenant_scope(one.tenant.id):
            version = AdapterVersion.objects.get()
            assert TrainingRun.objects.get().version_id == version.id
        assert version.path.startswith(f"{one.tenant.id}/{one.policy.id}/")
        assert run.id.hex[-8:] in version.path
    assert not train_next(trainer=fake.process)


def test_no_more_share_a_line_than_the_rule_says(people: Any, fake: Fake) -> None:
    queued = [queue_run(one) for one in people(5)]
    assert train_next(trainer=fake.process)
    assert train_next(trainer=fake.process)
    assert [len(line) for line in fake.lines()] == [4, 1]
    assert ended(queued) == [("succeeded", 1)] * 5


def test_replicas_take_each_policy_alone(people: Any, fake: Fake, settings: Settings) -> None:
    settings.TRAINER_RANKS, settings.TRAINER_TENSOR_PARALLEL = 2, 1
    queued = [queue_run(one) for one in people(2)]
    assert train_next(trainer=fake.process)
    assert train_next(trainer=fake.process)
    assert [len(line) for line in fake.lines()] == [1, 1]
    assert ended(queued) == [("succeeded", 1)] * 2


@pytest.mark.parametrize("place", [0, 1], ids=["first in turn", "behind a small one"])
def test_a_large_run_goes_alone_and_waits_unclaimed(people: Any, fake: Fake, place: int) -> None:
    tenants = people(3)
    with tenant_scope(tenants[place].tenant.id):
        turn = Sample.objects.get().turn
        turn.prompt_ids = [5] * 200
        turn.save()
    queued = [queue_run(one) for one in tenants]
    assert train_next(trainer=fake.process)
    left = [0, 2] if place else [0]
    assert fake.lines() == [[str(queued[index].id) for index in left]]
    assert [state for state, _ in ended(queued)] == [
        "succeeded" if index in left else "queued" for index in range(3)
    ]
    assert states_of(tenants[1]) == {"ready": 1}
    while train_next(trainer=fake.process):
        pass
    assert ended(queued) == [("succeeded", 1)] * 3


def test_a_run_of_several_updates_goes_alone(people: Any, fake: Fake) -> None:
    tenants = people(2)
    configure(tenants[1], batch_size=1, updates=2)
    for one in tenants:
        queue_run(one)
    assert train_next(trainer=fake.process)
    assert [len(line) for line in fake.lines()] == [1]


@pytest.mark.parametrize("mode", ["refused", "no_op", "failed"])
def test_ones_end_is_no_others(people: Any, fake: Fake, mode: str) -> None:
    tenants = people(3)
    queued = [queue_run(one) for one in tenants]
    fake.orders(mode="made", modes={str(queued[1].id): mode})
    assert train_next(trainer=fake.process)
    states = [state for state, _ in ended(queued)]
    assert (states[0], states[2]) == ("succeeded", "succeeded")
    assert states[1] != "succeeded"
    assert [states_of(one) for one in (tenants[0], tenants[2])] == [{"consumed": 1}] * 2
    with tenant_scope(tenants[1].tenant.id):
        assert not AdapterVersion.objects.exists()


def test_a_run_that_is_cancelled_meanwhile_stops_no_other(
    people: Any, fake: Fake, settings: Settings
) -> None:
    settings.LEASE_S = 2.0
    tenants = people(3)
    queued = [queue_run(one) for one in tenants]
    fake.orders(mode="made", seconds=0.5)

    class Cancels(LeaseKeeper):
        done = False

        def __call__(self, progress: Any) -> str:
            if not Cancels.done:
                Cancels.done = True
                with tenant_scope(tenants[1].tenant.id):
                    runs.cancel_run(run_id=queued[1].id, actor="user:1")
            return super().__call__(progress)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("workers.training.LeaseKeeper", Cancels)
        assert train_next(trainer=fake.process)
    assert [state for state, _ in ended(queued)] == ["succeeded", "cancelled", "succeeded"]
    assert [states_of(one) for one in tenants] == [{"consumed": 1}, {"ready": 1}, {"consumed": 1}]
    with tenant_scope(tenants[1].tenant.id):
        assert not AdapterVersion.objects.exists()


def test_where_the_child_dies_all_are_free_again_and_each_goes_alone(people: Any, fake: Fake) -> None:
    tenants = people(3)
    queued = [queue_run(one) for one in tenants]
    fake.orders(mode="made", modes={str(queued[1].id): "die"})
    assert train_next(trainer=fake.process)
    assert ended(queued) == [("queued", 1)] * 3
    assert [states_of(one) for one in tenants] == [{"ready": 1}] * 3
    for _ in range(3):
        assert train_next(trainer=fake.process)
    assert sorted(map(len, fake.lines())) == [1, 1, 1, 3]
    assert ended(queued) == [("succeeded", 2), ("queued", 2), ("succeeded", 2)]
    assert [states_of(one) for one in tenants] == [{"consumed": 1}, {"ready": 1}, {"consumed": 1}]


def test_a_line_that_is_refused_as_a_whole_is_asked_for_one_by_one(people: Any, fake: Fake) -> None:
    queued = [queue_run(one) for one in people(2)]
    fake.orders(mode="made", company="bad_request")
    assert train_next(trainer=fake.process)
    assert [len(line) for line in fake.lines()] == [2, 1, 1]
    assert ended(queued) == [("succeeded", 1)] * 2


def test_the_others_of_a_refused_line_keep_their_leases_while_each_is_made(
    people: Any, fake: Fake, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = 1.0
    queued = [queue_run(one) for one in people(3)]
    fake.orders(mode="made", company="bad_request", seconds=1.5)
    commit = commits.commit_run
    silent: list[int] = []

    def with_a_look(**fields: Any) -> TrainingRun:
        with system_scope("upkeep"):
            held = TrainingRun.objects.exclude(id=fields["run_id"]).filter(state="running")
            silent.append(held.filter(lease_until__lt=timezone.now()).count())
        return commit(**fields)

    monkeypatch.setattr(commits, "commit_run", with_a_look)
    assert train_next(trainer=fake.process)
    assert silent == [0, 0, 0]
    assert ended(queued) == [("succeeded", 1)] * 3


def test_a_run_that_cannot_even_be_claimed_holds_up_nobody_else(
    people: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = [queue_run(one) for one in people(2)]
    claim = runs.claim_run

    def fails_for_the_first(**fields: Any) -> runs.Claim | None:
        if fields["run_id"] == queued[0].id:
            raise KeyError("its rows make no sense")
        return claim(**fields)

    monkeypatch.setattr(runs, "claim_run", fails_for_the_first)
    assert train_next(trainer=fake.process)
    assert ended(queued) == [("queued", 0), ("succeeded", 1)]


def test_a_worker_that_is_told_to_stop_puts_all_down(people: Any, fake: Fake) -> None:
    tenants = people(2)
    queued = [queue_run(one) for one in tenants]
    fake.orders(mode="hang")

    def stop_when_it_works() -> None:
        while not fake.seen():
            time.sleep(0.05)
        fake.process.end()

    stopper = threading.Thread(target=stop_when_it_works)
    stopper.start()
    assert train_next(trainer=fake.process)
    stopper.join()
    assert ended(queued) == [("queued", 0)] * 2
    assert [states_of(one) for one in tenants] == [{"ready": 1}] * 2


def test_a_commit_that_fails_leaves_the_others_committed(
    people: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants = people(3)
    queued = [queue_run(one) for one in tenants]
    commit = commits.commit_run

    def fails_for_the_first(**fields: Any) -> TrainingRun:
        if fields["run_id"] == queued[0].id:
            raise RuntimeError("no")
        return commit(**fields)

    monkeypatch.setattr(commits, "commit_run", fails_for_the_first)
    with pytest.raises(RuntimeError, match="no"):
        train_next(trainer=fake.process)
    assert ended(queued) == [("running", 1), ("succeeded", 1), ("succeeded", 1)]


def test_a_run_whose_samples_do_not_fit_ends_and_the_others_are_made(people: Any, fake: Fake) -> None:
    tenants = people(2)
    with tenant_scope(tenants[0].tenant.id):
        turn = Sample.objects.get().turn
        turn.sampling = {"temperature": 99.0}
        turn.save()
    queued = [queue_run(one) for one in tenants]
    assert train_next(trainer=fake.process)
    assert ended(queued) == [("no_op", 1), ("succeeded", 1)]
    assert states_of(tenants[0]) == {"dropped": 1}
