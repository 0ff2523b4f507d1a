"""Trainer seconds are shared among tenants: which run a free trainer takes, and who pays for it."""

import datetime as dt
import math
import uuid
from dataclasses import dataclass
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from apps.learning.models import RunState, TrainerAccount, TrainingRun
from apps.learning.rules.round_robin import Account, Fairness, charged, credited, in_turn
from kernel import clock
from kernel.tenancy import system_scope


@dataclass(frozen=True, slots=True)
class Next:
    """A run that a trainer may try to claim, in its tenant's scope."""

    tenant_id: uuid.UUID
    run_id: uuid.UUID


def rules() -> Fairness:
    """Return the round robin's numbers."""
    return Fairness(quantum_s=settings.FAIR_QUANTUM_S, debt_s=settings.FAIR_DEBT_S)


def next_runs(*, limit: int) -> list[Next]:
    """Return the runs that a free trainer should try to claim now, first things first; at most `limit`.

    Queued ones whose time has come and those whose holder's lease ran out. The order among tenants is the
    deficit round robin's; a tenant's own runs go by age. A paused tenant's wait. The rounds that pass before
    the first one are credited here, to every waiting tenant. Nothing is claimed: two callers may get the
    same, and `runs.claim_run` decides.
    """
    now = clock.now()
    with system_scope("turns of tenants at the trainers"), transaction.atomic():
        waiting: dict[uuid.UUID, list[uuid.UUID]] = {}
        for tenant_id, run_id in (
            TrainingRun.objects.filter(
                Q(state=RunState.QUEUED, available_at__lte=now)
                | Q(state=RunState.RUNNING, lease_until__lt=now)
            )
            .filter(tenant__paused_at=None)
            .order_by("created_at", "id")
            .values_list("tenant_id", "id")
        ):
            waiting.setdefault(tenant_id, []).append(run_id)
        if not waiting:
            return []
        rows = _accounts(waiting)
        running = dict(
            TrainingRun.objects.filter(tenant_id__in=waiting, state=RunState.RUNNING, lease_until__gte=now)
            .order_by()
            .values_list("tenant_id")
            .annotate(n=Count("id"))
        )
        accounts = {tenant_id: _account(row, running.get(tenant_id, 0)) for tenant_id, row in rows.items()}
        picks = list(islice(in_turn(waiting, accounts, rules(), now=now.timestamp()), limit))
        if picks and picks[0].rounds:
            for tenant_id, row in rows.items():
                row.deficit_s = credited(accounts[tenant_id], picks[0].rounds, rules()).deficit_s
            TrainerAccount.objects.bulk_update(rows.values(), ["deficit_s"])
        return [Next(pick.tenant, pick.run) for pick in picks]


def begin(run: TrainingRun) -> None:
    """Note, in the claim's transaction, that its tenant is served now."""
    account = _open_account(run.tenant_id)
    account.served_at = clock.now()
    account.save(update_fields=["served_at"])


def charge(run: TrainingRun, seconds: float | None = None) -> None:
    """Have a run's tenant pay for an attempt that ends in the caller's transaction,
    which locked and saves the run.

    `seconds` is what the trainer measured; without it, the time from the claim to the holder's last sign of
    life.
    """
    spent = _held_s(run) if seconds is None else max(0.0, seconds)
    run.trainer_s += spent
    row = _open_account(run.tenant_id)
    account = charged(_account(row, 0), spent, rules())
    row.deficit_s = account.deficit_s
    row.typical_s = account.typical_s
    row.used_s += spent
    row.save(update_fields=["deficit_s", "typical_s", "used_s"])


def _held_s(run: TrainingRun) -> float:
    if run.started_at is None:
        return 0.0
    now = clock.now()
    until = now
    if run.lease_until is not None and run.lease_until < now:
        until = run.lease_until - dt.timedelta(seconds=settings.LEASE_S)
    return max(0.0, (until - run.started_at).total_seconds())


def _accounts(tenants: dict[uuid.UUID, list[uuid.UUID]]) -> dict[uuid.UUID, TrainerAccount]:
    """Return the tenants' accounts, made where there is none yet, locked always in the same order."""
    rows = TrainerAccount.objects.select_for_update().filter(tenant_id__in=tenants).order_by("tenant_id")
    found = {row.tenant_id: row for row in rows}
    missing = sorted(set(tenants) - set(found))
    if missing:
        TrainerAccount.objects.bulk_create(
            [TrainerAccount(tenant_id=tenant_id, deficit_s=rules().quantum_s) for tenant_id in missing],
            ignore_conflicts=True,
        )
        found = {row.tenant_id: row for row in rows.all()}
    return found


def _open_account(tenant_id: uuid.UUID) -> TrainerAccount:
    """Return a tenant's account, locked."""
    TrainerAccount.objects.bulk_create(
        [TrainerAccount(tenant_id=tenant_id, deficit_s=rules().quantum_s)], ignore_conflicts=True
    )
    return TrainerAccount.objects.select_for_update().get(tenant_id=tenant_id)


def _account(row: TrainerAccount, running: int) -> Account:
    return Account(
        deficit_s=row.deficit_s,
        served_at=row.served_at.timestamp() if row.served_at else -math.inf,
        typical_s=row.typical_s,
        running=running,
    )
