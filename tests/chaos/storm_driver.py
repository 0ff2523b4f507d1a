"""Fills a ledger and says how it stands: `python -m tests.chaos.storm_driver fill FIRST COUNT | state`.

A process of its own, because the storm's servers are not the test's.
"""

# ruff: noqa: E402 - Django must be set up before its models are imported

import json
import sys
from collections import Counter

import django

django.setup()

from django.db import transaction
from django.db.models import Count, Max, Sum

from apps.accounts.models import Tenant
from apps.adapters import store
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.conversations.models import Turn, TurnState
from apps.judging.services import ask_for_judgement
from apps.learning.models import Sample, TrainerAccount, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_turn
from tests.tenants import Somebody, add_somebody

SLUGS = ("storm", "gale")
SAID = ("Thanks, perfect!", "Too long. One short sentence is plenty.")


def somebody(slug: str) -> Somebody:
    with system_scope("storm"):
        tenant = Tenant.objects.filter(slug=slug).first()
    return add_somebody(slug, tenant=tenant)


def fill(first: int, count: int) -> None:
    """Store turns of both tenants: praised, scolded, and every tenth one that its client hung up on."""
    people = [somebody(slug) for slug in SLUGS]
    for number in range(first, first + count):
        who = people[number % 2]
        hung_up = {"state": TurnState.ABORTED} if number % 10 == 7 else {}
        said = [{"role": "user", "content": SAID[number // 2 % 2]}]
        with tenant_scope(who.tenant.id), transaction.atomic():
            turn = add_turn(who, question=f"What is comet {number}?", next_state=said, **hung_up)
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
        taught: Counter[str] = Counter()
        whole = True
        for version in AdapterVersion.objects.all():
            told = (store.absolute(version.path) / "adapter_model.safetensors").read_text().split(" ")
            taught.update(told)
            consumed = Sample.objects.filter(run__version=version, state="consumed")
            whole = whole and sorted(told) == sorted(str(pk) for pk in consumed.values_list("pk", flat=True))
        reasons = Sample.objects.filter(state__in=("ineligible", "dropped")).values_list("reason")
        return {
            "turns": Turn.objects.count(),
            "samples": dict(Sample.objects.values_list("state").annotate(n=Count("id")).order_by()),
            "reasons": dict(reasons.annotate(n=Count("id")).order_by()),
            "runs": dict(TrainingRun.objects.values_list("state").annotate(n=Count("id")).order_by()),
            "fence": TrainingRun.objects.aggregate(n=Max("fence"))["n"],
            "versions": AdapterVersion.objects.count(),
            "taught": sum(taught.values()),
            "taught_once": sum(times == 1 for times in taught.values()),
            "versions_hold_what_they_consumed": whole,
            "seconds_of_runs": TrainingRun.objects.aggregate(n=Sum("trainer_s"))["n"] or 0.0,
            "seconds_of_tenants": TrainerAccount.objects.aggregate(n=Sum("used_s"))["n"] or 0.0,
        }


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(int(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(state()))
