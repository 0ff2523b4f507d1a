"""Find work whose row says that it is due and that nobody does: the broker may lose what it was told."""

import datetime as dt
import logging

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.conversations.models import Feedback, Turn, TurnKind, TurnState
from apps.judging.eligibility import opted_out_turns
from apps.judging.models import Judgement, JudgementState
from apps.judging.services import ask_for_sample
from apps.judging.upkeep import LOOK_BACK
from apps.learning import schedule
from apps.learning.commits import ask_to_publish
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, SampleState, TrainingRun
from apps.learning.withdrawn import withdraw
from kernel.ids import first_id_at
from kernel.tenancy import tenant_scope

logger = logging.getLogger(__name__)


def ask_for_unsampled(*, older_than_s: float, limit: int) -> int:
    """Announce the sampling of finished turns in scope of which all is said and that have no
    sample; return how many."""
    now = timezone.now()
    verdicts = Judgement.objects.filter(turn=OuterRef("pk")).exclude(state=JudgementState.PENDING)
    told = Feedback.objects.filter(turn=OuterRef("pk"))
    never_judged = (
        Q(state__in=(TurnState.ABORTED, TurnState.FAILED)) | Q(side=True) | Q(kind=TurnKind.EVALUATION)
    )
    turns = (
        Turn.objects.filter(id__gte=first_id_at(now - LOOK_BACK), sample__isnull=True, tenant__paused_at=None)
        .exclude(Turn.OPEN)
        .filter(completed_at__lt=now - dt.timedelta(seconds=older_than_s))
        .exclude(
            session__idle_at__isnull=True,
            session__trajectory__outcome__isnull=True,
            session__trajectory__isnull=False,
        )
        .filter(
            never_judged
            | Exists(verdicts)
            | Exists(told)
            | Q(next_state_at__isnull=True, session__idle_at__isnull=False)
            | Q(next_state_at__isnull=True, session__trajectory__outcome__isnull=False)
            | Q(reply_edited=True)
            | opted_out_turns()
        )
        .order_by("id")
        .values_list("tenant_id", "id")[:limit]
    )
    with transaction.atomic():
        found = list(turns)
        for tenant_id, turn_id in found:
            ask_for_sample(turn_id=turn_id, tenant_id=tenant_id)
    return len(found)


def queued_runs() -> int:
    """Return how many runs in scope wait for a trainer that may take them."""
    return TrainingRun.objects.filter(state=RunState.QUEUED, tenant__paused_at=None).count()


def announce_queued(*, older_than_s: float) -> int:
    """Wake a trainer again for every run in scope that waits for longer than this; return how many."""
    before = timezone.now() - dt.timedelta(seconds=older_than_s)
    with transaction.atomic():
        waiting = list(
            TrainingRun.objects.filter(state=RunState.QUEUED, created_at__lt=before, tenant__paused_at=None)
        )
        for run in waiting:
            schedule.announce(run)
    return len(waiting)


def ask_to_publish_created(*, older_than_s: float) -> int:
    """Announce the publishing of versions in scope that are only created for longer
    than this; return how many."""
    before = timezone.now() - dt.timedelta(seconds=older_than_s)
    with transaction.atomic():
        waiting = list(AdapterVersion.objects.filter(state=VersionState.CREATED, created_at__lt=before))
        for version in waiting:
            ask_to_publish(version)
    return len(waiting)


def set_unwanted_aside() -> int:
    """Take back waiting shadow samples in scope that teach what is not wanted any more; return how many.

    Quiet minutes do so before they teach, the schedule before it trains: where neither comes to a policy, nobody
    would, and the words would stay.
    """
    waiting = Sample.objects.filter(source=TurnKind.SHADOW, state=SampleState.READY)
    number = 0
    for tenant_id, policy_id in (
        waiting.order_by("policy_id").values_list("tenant_id", "policy_id").distinct()
    ):
        with tenant_scope(tenant_id), transaction.atomic():
            policy = Policy.objects.select_for_update(of=("self",), no_key=True).get(pk=policy_id)
            number += withdraw(policy)
    return number


def start_due_runs() -> int:
    """Start the runs that the clock, an end of a pause or a lost chance calls for; return how many.

    Must run under `system_scope`; each policy is looked at in its tenant's own scope.
    """
    open_runs = TrainingRun.objects.filter(policy=OuterRef("policy"), state__in=OPEN_RUN_STATES)
    policies = list(
        Sample.objects.filter(state=SampleState.READY)
        .filter(~Exists(open_runs))
        .order_by()
        .values_list("tenant_id", "policy_id")
        .distinct()
    )
    started = 0
    for tenant_id, policy_id in policies:
        try:
            with tenant_scope(tenant_id), transaction.atomic():
                started += schedule.consider(policy_id=policy_id) is not None
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # a fault in one's rows must not keep all others from their steps
            logger.exception("policy %s could not be looked at", policy_id)
    return started
