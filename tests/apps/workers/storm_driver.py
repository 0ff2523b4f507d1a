"""Fills a ledger and says how it stands: `python -m tests.apps.workers.storm_driver fill FIRST COUNT | state`.

A process of its own, because the storm's servers are not the test's.
"""

# ruff: noqa: E402 - Django must be set up before its models are imported

import json
import sys

import django

django.setup()

from django.db import transaction
from django.db.models import Count, Max

from apps.accounts.models import Tenant
from apps.adapters import store
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.conversations.models import Turn
from apps.judging.services import ask_for_judgement
from apps.learning.models import Sample, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_turn
from tests.tenants import Somebody, add_somebody

SLUG = "storm"


def somebody() -> Somebody:
    with system_scope("storm"):
        tenant = Tenant.objects.filter(slug=SLUG).first()
    return add_somebody(SLUG, tenant=tenant)


def fill(first: int, count: int) -> None:
    who = somebody()
    for number in range(first, first + count):
        said = "Too long. One short sentence is plenty." if number % 2 else "Thanks, perfect!"
        with tenant_scope(who.tenant.id), transaction.atomic():
            turn = add_turn(
                who, question=f"What is comet {number}?", next_state=[{"role": "user", "content": said}]
            )
            ask_for_judgement(turn_id=turn.id, tenant_id=turn.tenant_id)


def publish() -> None:
    """Stand in for the engines: whatever was made goes live."""
    with system_scope("storm"), transaction.atomic():
        for version in AdapterVersion.objects.filter(state=VersionState.CREATED).order_by("number"):
            AdapterVersion.objects.filter(id=version.id).update(state=VersionState.READY)
            Policy.objects.filter(id=version.policy_id).update(live=version)


def state() -> dict[str, object]:
    publish()
    with system_scope("storm"):
        taught: list[str] = []
        for version in AdapterVersion.objects.all():
            taught += (store.absolute(version.path) / "adapter_model.safetensors").read_text().split(" ")
        return {
            "turns": Turn.objects.count(),
            "samples": dict(Sample.objects.values_list("state").annotate(n=Count("id")).order_by()),
            "runs": dict(TrainingRun.objects.values_list("state").annotate(n=Count("id")).order_by()),
            "fence": TrainingRun.objects.aggregate(n=Max("fence"))["n"],
            "versions": AdapterVersion.objects.count(),
            "taught": len(taught),
            "taught_once": len(set(taught)),
            "consumed": sorted(
                str(pk) for pk in Sample.objects.filter(state="consumed").values_list("pk", flat=True)
            )
            == sorted(taught),
        }


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(int(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(state()))
