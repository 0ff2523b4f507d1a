"""What the clock calls for. Each may run twice at once, or late, or be left out once: the rows decide."""

import datetime as dt
import logging

import redis
from django.conf import settings
from django.utils import timezone

from apps.accounts import mails
from apps.adapters import store
from apps.alerts import delivery as alerts
from apps.conversations import services as conversations
from apps.dashboard.rollups import filling as rollups
from apps.engines import services as engines
from apps.governance import retention
from apps.governance.erasure import work as erasures
from apps.governance.export import files as export_files
from apps.governance.export import jobs as exports
from apps.judging import upkeep as judging
from apps.learning import runs
from apps.learning import upkeep as learning
from apps.learning.drift import actions, readings
from apps.memory import services as memory
from kernel.locks import alone
from kernel.models import OutboxMessage
from kernel.rest import wishes
from kernel.tenancy import system_scope, tenant_scope
from workers.tasks import task

logger = logging.getLogger(__name__)

LOST_AFTER_S = 30.0  # a message that did nothing for so long may be lost
ENOUGH = 50  # messages in a queue: while so many wait, what looks lost may only be late
AT_ONCE = 500
SUMMED_AT_ONCE = 1_000  # stretches, some milliseconds each
OUTBOX_KEPT = dt.timedelta(days=1)
TURN_MARGIN_S = 120.0  # on top of the engine's own time limit


@task("workers.upkeep.expire_leases")
def expire_leases() -> None:
    """Put runs back whose holder went silent."""
    with system_scope("expired leases"):
        expired = runs.expire_leases()
    if expired:
        logger.warning("%d runs lost their worker and wait again", expired)


@task("workers.upkeep.start_runs")
def start_runs() -> None:
    """Start the runs that waited long enough, or that nobody started."""
    with system_scope("training schedule"):
        learning.start_due_runs()


@task("workers.upkeep.reconcile_engines")
def reconcile_engines() -> None:
    """Load on the engines what should be there, and probe it."""
    engines.reconcile()


@task("workers.upkeep.find_lost_work")
def find_lost_work() -> None:
    """Announce again what its row says is due, where the broker does not hold enough to account for it."""
    with system_scope("lost work"):
        if backlog("judge") < ENOUGH:
            judging.ask_for_unjudged(older_than_s=LOST_AFTER_S, limit=AT_ONCE)
            judging.ask_for_stalled(older_than_s=settings.JUDGE_TIMEOUT_S + 2 * LOST_AFTER_S)
            learning.ask_for_unsampled(older_than_s=LOST_AFTER_S, limit=AT_ONCE)
            alerts.ask_for_due(older_than_s=LOST_AFTER_S, limit=AT_ONCE)
            mails.ask_for_due(older_than_s=LOST_AFTER_S, limit=AT_ONCE)
        if backlog("train") < learning.queued_runs():
            learning.announce_queued(older_than_s=LOST_AFTER_S)
        if backlog("ops") < ENOUGH:
            learning.ask_to_publish_created(older_than_s=2 * LOST_AFTER_S)
            actions.ask_again(older_than_s=LOST_AFTER_S)
            exports.ask_again(older_than_s=LOST_AFTER_S)
            erasures.ask_again(older_than_s=LOST_AFTER_S)


@task("workers.upkeep.close_idle_sessions")
def close_idle_sessions() -> None:
    """Take quiet sessions to be over."""
    with system_scope("idle sessions"):
        conversations.close_idle_sessions(idle_s=settings.SESSION_IDLE_S)


@task("workers.upkeep.fail_lost_turns")
def fail_lost_turns() -> None:
    """Take turns whose gateway died to have failed."""
    with system_scope("lost turns"):
        conversations.fail_lost_turns(older_than_s=settings.ENGINE_TIMEOUT_S + TURN_MARGIN_S)


@task("workers.upkeep.forget_groundless")
def forget_groundless() -> None:
    """Delete preferences whose sessions are gone, and take back what waits to teach them or others that are not
    wanted any more; no prompt is told of them since."""
    with system_scope("groundless preferences"):
        memory.forget_groundless()
        learning.set_unwanted_aside()


@task("workers.upkeep.tell_again")
def tell_again() -> None:
    """Tell again what left the prompt for a version that does not answer any more,
    where the message that says so was lost."""
    with system_scope("preferences that no live version holds"):
        found = memory.held_elsewhere(limit=AT_ONCE)
    for tenant_id, policy_id in found:
        with tenant_scope(tenant_id):
            memory.tell_again(policy_id=policy_id)


@task("workers.upkeep.begin_sweeps")
def begin_sweeps() -> None:
    """Begin to delete the sessions that are older than their policies keep them."""
    if begun := retention.begin_due():
        logger.info("sessions go by age in %d policies", begun)


@task("workers.upkeep.read_weeks")
def read_weeks() -> None:
    """Read the drift of the week that is over, of every policy that people talked to."""
    with system_scope("weekly drift"):
        if backlog("ops") < ENOUGH:
            readings.ask_for_weeks(limit=AT_ONCE)


@task("workers.upkeep.sum_up_turns")
def sum_up_turns() -> None:
    """Sum up the turns of half-hours that are over, of others again that something changed in."""
    with alone("sum up turns") as first:
        if first:
            rollups.sum_up_due(limit=SUMMED_AT_ONCE)


@task("workers.upkeep.collect_garbage")
def collect_garbage() -> None:
    """Delete adapter files that no version names, and exports whose time is over."""
    with system_scope("garbage files"):
        store.collect_garbage()
        exports.expire()
    export_files.collect_garbage()


@task("workers.upkeep.prune_outbox")
def prune_outbox() -> None:
    """Delete messages and mails that were sent long ago."""
    with system_scope("old messages"):
        OutboxMessage.objects.filter(sent_at__lt=timezone.now() - OUTBOX_KEPT).delete()
        mails.prune()


@task("workers.upkeep.prune_wishes")
def prune_wishes() -> None:
    """Forget requests under an idempotency key that are too old to come again."""
    with system_scope("old wishes"):
        wishes.prune()


def backlog(queue: str) -> int:
    """Return how many messages wait in a queue of the broker."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5.0) as broker:
        return int(broker.llen(queue))
