"""Announce work inside the caller's transaction."""

import datetime as dt
import uuid
from collections.abc import Mapping

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from kernel.models import OutboxMessage

QUEUES = ("judge", "ops", "train")
WAITING_TASKS = (
    "workers.judging.judge_turn",
    "workers.judging.rejudge",
    "workers.samples.make_sample",
    "workers.training.train",
)
"""What of a paused tenant stays in the outbox until it is resumed:
none of it begins meanwhile, and none is lost."""
HELD = Q(tenant__paused_at__isnull=False, task__in=WAITING_TASKS)
"""Rows that wait for their tenant to be resumed."""


def due(now: dt.datetime) -> QuerySet[OutboxMessage]:
    """Return the rows that should be on their way: unsent, their time has come, and no pause holds them."""
    return OutboxMessage.objects.filter(sent_at__isnull=True, available_at__lte=now).exclude(HELD)


def enqueue(
    *,
    task: str,
    queue: str,
    tenant_id: uuid.UUID | None,
    kwargs: Mapping[str, object],
    dedupe_key: str | None = None,
    delay_s: float = 0.0,
) -> None:
    """Write an outbox row; `workers.relay` sends it by task name after the commit.

    With a `dedupe_key` a second row for the same, still unsent work is not written. `kwargs` is JSON
    and gets `tenant_id` added. Must run inside a transaction: without one the row could outlive the
    change that it announces.
    """
    if queue not in QUEUES:
        raise ValueError(f"queue {queue!r} is not one of {QUEUES}")
    if not connection.in_atomic_block:
        raise RuntimeError(f"enqueue({task}) outside a transaction")
    message = OutboxMessage(
        tenant_id=tenant_id,
        task=task,
        queue=queue,
        kwargs={**kwargs, **({"tenant_id": str(tenant_id)} if tenant_id else {})},
        dedupe_key=dedupe_key,
        available_at=timezone.now() + dt.timedelta(seconds=delay_s),
    )
    if dedupe_key is None:
        message.save(force_insert=True)
        return
    # the row that stands for this work is held until the caller commits: were it sent before, its receiver
    # could look too early and the work be forgotten. One that was sent meanwhile does not count.
    unsent = OutboxMessage.objects.select_for_update().filter(dedupe_key=dedupe_key, sent_at__isnull=True)
    OutboxMessage.objects.bulk_create([message], ignore_conflicts=True)
    if not unsent.values_list("pk"):
        OutboxMessage.objects.bulk_create([message], ignore_conflicts=True)
