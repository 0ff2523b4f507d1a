"""Two trainers, one ledger, and everything that can die does: no sample is trained on twice."""

import datetime as dt
import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, VersionState
from apps.learning import runs, upkeep
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, states_of
from tests.apps.workers.trainers import Fake, train_run
from tests.tenants import Somebody, add_somebody

SAMPLES, BATCH = 40, 8
ENDINGS = ("made", "made", "made", "die", "die_after_write", "internal", "failed", "lease", "publish_late")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_sample_is_trained_on_twice(tmp_path: Path, seed: int) -> None:
    somebody = add_somebody()
    add_samples(somebody, SAMPLES)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"batch_size": BATCH, "attempts": 50}
        somebody.policy.save()
    done = threading.Event()
    failures: list[BaseException] = []

    def loop(number: int) -> None:
        chance = random.Random(seed * 10 + number)
        fake = Fake(tmp_path, f"trainer{number}")
        try:
            while not done.is_set():
                ending = chance.choice(ENDINGS)
                _one_round(somebody, fake, ending)
                with tenant_scope(somebody.tenant.id):
                    if not Sample.objects.exclude(state=SampleState.CONSUMED).exists():
                        done.set()
        except BaseException as error:
            failures.append(error)
            done.set()
        finally:
            fake.process.end()
            connection.close()

    trainers = [threading.Thread(target=loop, args=(number,)) for number in range(2)]
    for thread in trainers:
        thread.start()
    for thread in trainers:
        thread.join(120)
    done.set()
    assert failures == []

    assert states_of(somebody) == {"consumed": SAMPLES}
    with tenant_scope(somebody.tenant.id):
        versions = list(AdapterVersion.objects.order_by("number"))
        assert [version.number for version in versions] == list(range(1, SAMPLES // BATCH + 1))
        assert TrainingRun.objects.filter(state=RunState.SUCCEEDED).count() == len(versions)
        # what each version says it was made of, from the bytes that the trainer wrote into it
        taught = Counter[str]()
        for version in versions:
            taught.update(_samples_in(version))
            assert set(_samples_in(version)) == {
                str(pk) for pk in Sample.objects.filter(run=version.made_by_run).values_list("pk", flat=True)
            }
        assert taught == Counter({str(pk): 1 for pk in Sample.objects.values_list("pk", flat=True)})


def _one_round(somebody: Somebody, fake: Fake, ending: str) -> None:
    """What workers and upkeep do, in one go: start what is due, work on what waits, publish, expire."""
    with system_scope("tests"):
        upkeep.start_due_runs()
    with tenant_scope(somebody.tenant.id):
        waiting = list(TrainingRun.objects.filter(state__in=[RunState.QUEUED, RunState.RUNNING]))
        for run in waiting:
            fake.orders(mode="made" if ending in ("lease", "publish_late") else ending)
            if ending == "lease":
                # a holder that is paused past its lease: somebody else may have the run before it commits
                TrainingRun.objects.filter(id=run.id, state=RunState.RUNNING).update(
                    lease_until=timezone.now() - dt.timedelta(seconds=1)
                )
            train_run(run_id=run.id, trainer=fake.process)
            if ending == "failed":
                TrainingRun.objects.filter(state=RunState.FAILED).update(
                    finished_at=timezone.now() - dt.timedelta(days=1)
                )
    with system_scope("tests"):
        runs.expire_leases()
    if ending != "publish_late":
        _publish(somebody)


def _publish(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id), transaction.atomic():
        policy = type(somebody.policy).objects.select_for_update(of=("self",)).get(id=somebody.policy.id)
        for version in AdapterVersion.objects.filter(state=VersionState.CREATED).order_by("number"):
            version.state = VersionState.READY
            version.save()
            policy.live = version
            policy.save()


def _samples_in(version: AdapterVersion) -> list[str]:
    from apps.adapters import store

    return (store.absolute(version.path) / "adapter_model.safetensors").read_text().split(" ")
