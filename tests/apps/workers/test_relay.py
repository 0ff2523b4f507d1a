"""The outbox relay: each row is sent, whatever dies, and what is announced is never swallowed."""

import datetime as dt
import threading
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from apps.accounts.models import Tenant
from kernel import outbox
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope
from workers.relay import FULL, BrokerAway, relay_once, run, send_by_celery
from workers.upkeep import backlog, prune_outbox


class Broker:
    """Takes messages; refuses them from the `fails_at`-th on, once."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.taken: list[str] = []
        self.fails_at = fails_at

    def __call__(self, *, task: str, queue: str, kwargs: dict[str, Any], message_id: str) -> None:
        if self.fails_at is not None and len(self.taken) == self.fails_at:
            self.fails_at = None
            raise OperationalError("connection refused")
        self.taken.append(f"{queue}:{task}:{kwargs.get('n')}")


def announce(*numbers: int, **options: Any) -> None:
    with system_scope("tests"), transaction.atomic():
        for n in numbers:
            outbox.enqueue(task="t", queue="ops", tenant_id=None, kwargs={"n": n}, **options)


def unsent() -> list[int]:
    with system_scope("tests"):
        rows = OutboxMessage.objects.filter(sent_at__isnull=True).order_by("id")
        return [row.kwargs["n"] for row in rows]


@pytest.mark.django_db
def test_due_messages_are_sent_in_order_once() -> None:
    announce(1, 2)
    announce(3, delay_s=60)
    broker = Broker()
    assert relay_once(broker) == 2
    assert relay_once(broker) == 0
    assert broker.taken == ["ops:t:1", "ops:t:2"]
    assert unsent() == [3]


def flood(slug: str, count: int) -> None:
    with system_scope("tests"), transaction.atomic():
        tenant = Tenant.objects.create(slug=slug, name=slug)
        for n in range(count):
            outbox.enqueue(task=slug, queue="judge", tenant_id=tenant.id, kwargs={"n": n})


@pytest.mark.django_db
def test_a_tenant_that_floods_the_outbox_does_not_stand_before_the_others() -> None:
    flood("flood", 300)
    flood("quiet", 3)
    broker = Broker()
    assert relay_once(broker, limit=20, backlog=lambda _: 0) == 20
    assert [sent for sent in broker.taken if "quiet" in sent] == [f"judge:quiet:{n}" for n in range(3)]
    assert [sent for sent in broker.taken if "flood" in sent] == [f"judge:flood:{n}" for n in range(17)]
    while relay_once(broker, limit=20, backlog=lambda _: 0):
        pass
    assert len(broker.taken) == len(set(broker.taken)) == 303


@pytest.mark.django_db
def test_a_full_queue_is_not_filled_further_and_the_others_are() -> None:
    flood("flood", 5)
    announce(1)
    broker = Broker()
    assert relay_once(broker, backlog=lambda queue: FULL if queue == "judge" else 0) == 1
    assert broker.taken == ["ops:t:1"]
    assert relay_once(broker, backlog=lambda _: FULL - 1) == 5

    def away(_: str) -> int:
        raise redis.ConnectionError("refused")

    announce(2)
    with pytest.raises(BrokerAway):
        relay_once(broker, backlog=away)
    assert unsent() == [2]


@pytest.mark.django_db
def test_a_broker_that_goes_away_halfway_gets_the_rest_later() -> None:
    announce(1, 2, 3)
    broker = Broker(fails_at=1)
    with pytest.raises(BrokerAway):
        relay_once(broker)
    assert unsent() == [2, 3]
    assert relay_once(broker) == 2
    assert broker.taken == ["ops:t:1", "ops:t:2", "ops:t:3"]


@pytest.mark.django_db(transaction=True)
def test_a_relay_that_dies_between_send_and_commit_sends_again() -> None:
    announce(1)
    broker = Broker()

    def die_after_sending(**message: Any) -> None:
        broker(**message)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relay_once(die_after_sending)
    assert unsent() == [1]
    relay_once(broker)
    assert broker.taken == ["ops:t:1", "ops:t:1"]
    assert unsent() == []


@pytest.mark.django_db(transaction=True)
def test_two_relays_share_the_rows_and_none_is_sent_twice() -> None:
    announce(*range(300))
    broker = Broker()
    lock = threading.Lock()

    def send(**message: Any) -> None:
        with lock:
            broker(**message)

    def relay() -> None:
        while relay_once(send, limit=7):
            pass
        connection.close()

    relays = [threading.Thread(target=relay) for _ in range(2)]
    for thread in relays:
        thread.start()
    for thread in relays:
        thread.join()
    relay_once(send)
    assert sorted(int(taken.rsplit(":", 1)[1]) for taken in broker.taken) == list(range(300))


@pytest.mark.django_db(transaction=True)
def test_work_announced_while_its_message_is_being_sent_is_announced_again() -> None:
    announce(1, dedupe_key="same")
    broker = Broker()
    announced = threading.Event()

    def send(**message: Any) -> None:
        if not broker.taken:
            second = threading.Thread(target=announce_again)
            second.start()
            # it waits for this transaction instead of relying on a message that may have been read already
            assert not announced.wait(0.5)
            others.append(second)
        broker(**message)

    def announce_again() -> None:
        announce(2, dedupe_key="same")
        announced.set()
        connection.close()

    others: list[threading.Thread] = []
    assert relay_once(send) == 1
    others[0].join(10)
    assert unsent() == [2]


@pytest.mark.django_db(transaction=True)
def test_the_relay_waits_for_its_broker_and_stops_when_told() -> None:
    announce(1, 2)
    broker = Broker(fails_at=0)
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(broker, stop))
    thread.start()
    for _ in range(100):
        if len(broker.taken) == 2:
            break
        stop.wait(0.1)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert broker.taken == ["ops:t:1", "ops:t:2"]


@pytest.mark.django_db
def test_a_message_arrives_in_the_queue_it_names(valkey: redis.Redis) -> None:
    announce(1, 2)
    assert relay_once(send_by_celery) == 2
    assert backlog("ops") == 2
    assert backlog("judge") == 0


@pytest.mark.django_db
def test_old_sent_messages_are_pruned_and_unsent_ones_kept() -> None:
    announce(1, 2, 3)
    old = timezone.now() - dt.timedelta(days=2)
    with system_scope("tests"):
        OutboxMessage.objects.filter(kwargs__n=1).update(sent_at=old)
        OutboxMessage.objects.filter(kwargs__n=2).update(created_at=old)
        OutboxMessage.objects.filter(kwargs__n=3).update(sent_at=timezone.now())
    prune_outbox()
    with system_scope("tests"):
        assert sorted(row.kwargs["n"] for row in OutboxMessage.objects.all()) == [2, 3]


@pytest.mark.django_db(transaction=True)
def test_a_message_that_stands_for_uncommitted_work_is_not_sent_before_its_commit() -> None:
    announce(1, dedupe_key="same")
    broker = Broker()
    with system_scope("tests"), transaction.atomic():
        outbox.enqueue(task="t", queue="ops", tenant_id=None, kwargs={"n": 2}, dedupe_key="same")
        sent = threading.Thread(target=lambda: (relay_once(broker), connection.close()))
        sent.start()
        sent.join(10)
        assert broker.taken == []
    assert relay_once(broker) == 1
    assert broker.taken == ["ops:t:1"]
