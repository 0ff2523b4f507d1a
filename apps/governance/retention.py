"""Sessions go once nothing was said in them for longer than their policy keeps them.

A sweep is a deletion of what is aged: found once a day for each policy, or as soon as its days were changed,
and done by the same steps as a deletion that a person asks for.
"""

import datetime as dt
import logging
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from apps.adapters.models import Policy
from apps.governance.erasure.aged import kept_days
from apps.governance.erasure.extent import Counted, Extent, counted, extent_of
from apps.governance.erasure.requests import announce
from apps.governance.erasure.subjects import Meant
from apps.governance.models import OPEN_EXPORT_STATES, Erasure, ErasureState, Export, Subject
from kernel.tenancy import system_scope, tenant_scope

logger = logging.getLogger(__name__)

ACTOR = "system:retention"
EVERY = dt.timedelta(hours=24)
HEEDED = dt.timedelta(hours=6)
"""A sweep waits for an archive that is under way, unless that was asked for longer ago than this."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What goes of a policy by age, and when."""

    days: int | None
    """None: its sessions are kept."""
    at: dt.datetime
    """When the next sweep is due; now, where it is overdue."""
    sessions: Counted
    """That go then if nobody goes on with them."""
    under_way: Erasure | None


def outlook(policy: Policy) -> Outlook:
    """Return what the next sweep of a policy takes, as far as it is known now.

    Must run in the tenant's scope.
    """
    now, days = timezone.now(), kept_days(policy)
    last = _sweeps(policy.pk).first()
    at = now if last is None or days is None else max(now, _next(last, days, now))
    due = Counted(0) if days is None else counted(Meant.aged(policy.pk, days=days, at=at).sessions())
    return Outlook(
        days=days,
        at=at,
        sessions=due,
        under_way=last if last is not None and last.state == ErasureState.OPEN else None,
    )


def would_take(policy: Policy, days: int | None) -> Extent | None:
    """Return what another retention would delete now that the present one keeps;
    None where that is nothing."""
    present = kept_days(policy)
    if days is None or (present is not None and days >= present):
        return None
    taken = extent_of(Meant.aged(policy.pk, days=days, at=timezone.now()))
    return taken if taken.sessions.number else None


def begin_due() -> int:
    """Begin the sweeps that are due, of all tenants; return how many.

    Two that do this at once begin each once.
    """
    now = timezone.now()
    with system_scope("retention"):
        last = _sweeps(OuterRef("pk"))
        found = list(
            Policy.objects.filter(config__retention_days__gte=1)
            .annotate(
                swept_at=Subquery(last.values("created_at")[:1]),
                swept_days=Subquery(last.values("older_than_days")[:1]),
            )
            .order_by("pk")
        )
    begun = 0
    for policy in found:
        # most were looked at today: they cost no query of their own
        if (
            policy.swept_at is None
            or policy.swept_at <= now - EVERY
            or policy.swept_days != kept_days(policy)
        ):
            with tenant_scope(policy.tenant_id):
                begun += begin(policy.pk) is not None
    return begun


def begin(policy_id: uuid.UUID) -> Erasure | None:
    """Begin a policy's sweep if it is due and would take something; None if not.

    Must run in the tenant's scope.
    """
    now = timezone.now()
    with transaction.atomic():
        # whoever looks at the same moment waits here, and then finds this one's sweep
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).filter(pk=policy_id).first()
        days = None if policy is None else kept_days(policy)
        if policy is None or days is None or not _is_due(policy, days, now):
            return None
        meant = Meant.aged(policy.pk, days=days, at=now)
        if not meant.sessions().exists():
            return None
        sweep = Erasure.objects.create(
            tenant_id=policy.tenant_id,
            actor=ACTOR,
            subject=Subject.AGED,
            subject_id=policy.pk,
            older_than_days=days,
            turns_total=meant.turns().count(),
            moved_at=now,
        )
        announce(sweep)
    logger.info("policy %s: sessions older than %d days go", policy_id, days)
    return sweep


def _is_due(policy: Policy, days: int, now: dt.datetime) -> bool:
    last = _sweeps(policy.pk).first()
    if last is not None and (last.state == ErasureState.OPEN or _next(last, days, now) > now):
        return False
    archives = Export.objects.filter(state__in=OPEN_EXPORT_STATES, created_at__gt=now - HEEDED)
    return not archives.exists()


def _next(last: Erasure, days: int, now: dt.datetime) -> dt.datetime:
    """Return when the sweep after `last` is due."""
    return last.created_at + EVERY if last.older_than_days == days else now


def _sweeps(policy_id: uuid.UUID | OuterRef) -> QuerySet[Erasure]:
    """Return a policy's sweeps, newest first."""
    return Erasure.objects.filter(subject=Subject.AGED, subject_id=policy_id).order_by("-created_at")
