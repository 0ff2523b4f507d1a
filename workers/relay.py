"""Send what the outbox holds: `python -m workers.relay`. Any number may run; each row is sent by one.

Marking and sending are one transaction that holds the row: a relay that dies in between leaves it unmarked,
and it is sent again. The receiver's work is the same whether it hears once or twice.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

import django
import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from kernel.tenancy import system_scope

if TYPE_CHECKING:  # models are there once Django is set up
    from kernel.models import OutboxMessage

logger = logging.getLogger("workers.relay")

BATCH = 200
POLL_S = 0.2
FULL = 64  # messages in a queue of the broker: what more is due waits here, where tenants take turns
BACKOFF_FIRST_S = 0.5
BACKOFF_MAX_S = 10.0


class Send(Protocol):
    """Puts one message on the broker or raises."""

    def __call__(self, *, task: str, queue: str, kwargs: dict[str, Any], message_id: str) -> None: ...


Backlog = Callable[[str], int]
"""Says how many messages wait in a queue of the broker; raises RedisError or OSError where it is away."""


def send_by_celery(*, task: str, queue: str, kwargs: dict[str, Any], message_id: str) -> None:
    """Send a task by its name."""
    from workers.app import app

    app.send_task(task, kwargs=kwargs, queue=queue, task_id=message_id, retry=False, ignore_result=True)


def relay_once(send: Send, *, limit: int = BATCH, backlog: Backlog | None = None) -> int:
    """Send due rows that nobody else holds, and return how many; what was sent before an error stays sent.

    With `backlog` no queue of the broker is filled far beyond `FULL`, and where more is due than fits,
    tenants take turns: who announces little does not wait behind who announces ten thousand things at once.
    What of a paused tenant waits (`kernel.outbox.WAITING_TASKS`) is not due.
    """
    from kernel import outbox
    from kernel.models import OutboxMessage

    with system_scope("outbox relay"), transaction.atomic():
        full = _full(backlog) if backlog is not None else []
        waiting = outbox.due(timezone.now()).exclude(queue__in=full)
        chosen = waiting
        if backlog is not None and waiting[: limit + 1].count() > limit:
            chosen = waiting.filter(pk__in=_in_turns(waiting, limit))
        due = list(
            chosen.select_for_update(skip_locked=True, of=("self",)).order_by("available_at", "id")[:limit]
        )
        # marked before they are sent: whoever announces the same work meanwhile waits for this transaction
        # and then writes a row of their own, instead of relying on one whose receiver may have looked already
        OutboxMessage.objects.filter(pk__in=[message.pk for message in due]).update(sent_at=timezone.now())
        for number, message in enumerate(due):
            try:
                send(
                    task=message.task,
                    queue=message.queue,
                    kwargs=message.kwargs,
                    message_id=f"outbox-{message.pk}",
                )
            except (KombuError, RedisError, OSError) as error:
                unsent = [message.pk for message in due[number:]]
                OutboxMessage.objects.filter(pk__in=unsent).update(sent_at=None)
                failure: Exception = error
                break
        else:
            return len(due)
    raise BrokerAway(str(failure)) from failure


def _full(backlog: Backlog) -> list[str]:
    from kernel.outbox import QUEUES

    try:
        return [queue for queue in QUEUES if backlog(queue) >= FULL]
    except (RedisError, OSError) as error:
        raise BrokerAway(str(error)) from error


def _in_turns(waiting: "QuerySet[OutboxMessage]", limit: int) -> list[int]:
    """Return the rows to be sent next: each tenant's first one of a queue,
    then each one's second, and so on."""
    place = Window(RowNumber(), partition_by=[F("queue"), F("tenant_id")], order_by=["available_at", "id"])
    ranked = waiting.annotate(place=place).order_by("place", "available_at", "id")
    return list(ranked.values_list("pk", flat=True)[:limit])


class BrokerAway(Exception):
    """The broker did not take a message; it stays unsent."""


def run(
    send: Send,
    stop: threading.Event,
    *,
    on_idle: Callable[[], None] | None = None,
    backlog: Backlog | None = None,
) -> None:
    """Relay until told to stop; a broker or database that is away is waited for,
    ever longer up to a limit."""
    pause = BACKOFF_FIRST_S
    while not stop.is_set():
        try:
            sent = relay_once(send, backlog=backlog)
        except (BrokerAway, DatabaseError, InterfaceError) as error:
            logger.warning("relaying pauses for %.1f s: %s", pause, error)
            connection.close()
            stop.wait(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)
            continue
        pause = BACKOFF_FIRST_S
        if sent < BATCH:
            if on_idle is not None:
                on_idle()
            stop.wait(POLL_S)
    connection.close()


def main() -> None:
    """Relay until SIGTERM or SIGINT; a batch that has begun is finished."""
    django.setup()
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    logger.info("relaying")
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5.0) as broker:
        run(send_by_celery, stop, backlog=lambda queue: int(broker.llen(queue)))
    logger.info("stopped")


if __name__ == "__main__":
    main()
