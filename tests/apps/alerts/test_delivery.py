"""From an alert to the receiver: signed, once or again, until it is there or dead."""

import datetime as dt
import json
import threading
import time
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from apps.alerts import delivery, sending, services
from apps.alerts.endpoints import delete_endpoint
from apps.alerts.models import Alert, Attempt, Delivery, DeliveryState, Event, WebhookEndpoint
from kernel.errors import Conflict
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.alerts.receiver import Receiver, verified
from tests.apps.alerts.telling import due_in, endpoint, send, tell, the_one
from tests.locks import wait_for_a_lock
from tests.tenants import Somebody, add_somebody

DELIVER = "workers.alerts.deliver"


def test_an_alert_arrives_signed_and_is_recorded(somebody: Somebody, receiver: Receiver) -> None:
    _, secret = endpoint(somebody, receiver)
    told = tell(somebody)
    assert told is not None
    row = send()

    (got,) = receiver.got
    assert verified(got, secret, now=time.time())
    assert got.headers["webhook-id"] == f"msg_{told.pk.hex}"
    assert json.loads(got.body) == {
        "type": "version.live",
        "timestamp": told.created_at.isoformat(),
        "data": {
            "number": 3,
            "id": str(told.pk),
            "severity": "info",
            "words": "default answers from version 3.",
            "done": "",
            "policy_id": str(somebody.policy.id),
            "run_id": None,
            "version_id": None,
        },
    }
    assert (row.state, row.attempts, row.retries, row.claimed_until) == ("delivered", 1, 0, None)
    assert [(one.number, one.status, one.error) for one in Attempt.objects.all()] == [(1, 204, "")]


@pytest.mark.parametrize("spoil", ["body", "id", "timestamp", "secret"])
def test_a_receiver_finds_out_what_was_changed_on_the_way(
    somebody: Somebody, receiver: Receiver, spoil: str
) -> None:
    _, secret = endpoint(somebody, receiver)
    tell(somebody)
    send()
    (got,) = receiver.got
    assert verified(got, secret, now=time.time())
    if spoil == "body":
        got.body = got.body.replace(b"version 3", b"version 4")
    elif spoil == "secret":
        secret = "whsec_" + "A" * 44
    else:
        name = f"webhook-{spoil}"
        sent = got.headers[name]
        got.headers[name] = f"1{sent[1:]}" if spoil == "id" else str(int(sent) - 1)
    assert not verified(got, secret, now=time.time())


def test_the_same_alert_said_twice_is_one(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    assert tell(somebody) is not None
    assert tell(somebody) is None
    assert tell(somebody, key="another") is not None
    assert (Alert.objects.count(), Delivery.objects.count()) == (2, 2)


def test_an_alert_goes_with_the_transaction_that_said_it(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    with transaction.atomic():
        tell(somebody)
        transaction.set_rollback(True)
    with system_scope("look"):
        left = OutboxMessage.objects.filter(task=DELIVER).count()
    assert (Alert.objects.count(), Delivery.objects.count(), left) == (0, 0, 0)


def test_an_endpoint_hears_only_of_what_it_chose(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver, Event.RUN_FAILED, Event.DRIFT_CROSSED)
    tell(somebody)
    assert Delivery.objects.count() == 0
    tell(somebody, key="2", event=Event.RUN_FAILED)
    assert Delivery.objects.count() == 1


def test_another_tenants_endpoint_hears_nothing(somebody: Somebody, receiver: Receiver) -> None:
    other = add_somebody("other")
    with tenant_scope(other.tenant.id):
        endpoint(other, receiver)
    tell(somebody)
    with system_scope("look"):
        assert Delivery.objects.count() == 0


def test_the_task_delivered_twice_sends_once(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    send()
    send()
    assert len(receiver.got) == 1


def test_a_worker_that_died_in_between_is_followed_by_another_with_the_same_id(
    somebody: Somebody, receiver: Receiver
) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    row = the_one()
    dead = delivery._claim(row.pk)
    assert dead is not None
    late = delivery.attempt(dead.delivery)
    assert delivery._claim(row.pk) is None
    assert delivery.ask_for_due(older_than_s=0, limit=10) == 0

    Delivery.objects.update(claimed_until=timezone.now() - dt.timedelta(seconds=1))
    assert delivery.ask_for_due(older_than_s=0, limit=10) == 1
    row = send()
    assert (row.state, row.attempts) == ("delivered", 2)
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({got.body for got in receiver.got}) == 1

    delivery.record(dead, late)
    assert [one.number for one in Attempt.objects.all()] == [2]


def test_an_endpoint_that_is_deleted_while_it_is_tried(
    somebody: Somebody, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = endpoint(somebody, receiver)
    tell(somebody)
    real = sending.post

    def post(*args: Any) -> sending.Outcome:
        delete_endpoint(endpoint_id=row.pk, actor="user:x")
        return real(*args)

    monkeypatch.setattr(sending, "post", post)
    with tenant_scope(somebody.tenant.id):
        delivery.deliver(delivery_id=Delivery.objects.get().pk)
        assert not Delivery.objects.exists()
        assert Alert.objects.count() == 1
    assert len(receiver.got) == 1


@pytest.mark.django_db(transaction=True)
def test_what_came_of_an_attempt_waits_for_its_endpoint_with_nothing_in_hand(
    somebody: Somebody, receiver: Receiver
) -> None:
    """Who deletes an endpoint has it and then takes its deliveries."""
    row, _ = endpoint(somebody, receiver)
    tell(somebody)
    ends: list[str] = []

    def take_it() -> None:
        try:
            with tenant_scope(somebody.tenant.id), transaction.atomic():
                Delivery.objects.select_for_update(nowait=True).get()
            ends.append("free")
        except OperationalError:
            ends.append("held")
        finally:
            connection.close()

    def write_it_down(claim: delivery.Claim) -> None:
        try:
            with tenant_scope(somebody.tenant.id):
                delivery.record(claim, sending.Outcome(delivered=True))
        finally:
            connection.close()

    with tenant_scope(somebody.tenant.id):
        claim = delivery._claim(Delivery.objects.get().pk)
        assert claim is not None
        with transaction.atomic():
            WebhookEndpoint.objects.select_for_update().get(pk=row.pk)
            recording = threading.Thread(target=write_it_down, args=(claim,))
            recording.start()
            wait_for_a_lock()
            looking = threading.Thread(target=take_it)
            looking.start()
            looking.join()
        recording.join()
        assert Delivery.objects.get().state == DeliveryState.DELIVERED
    assert ends == ["free"]


def test_failures_are_tried_again_ever_later_and_end_as_a_dead_letter_that_is_replayed(
    somebody: Somebody, receiver: Receiver
) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    receiver.status, receiver.answer = 500, b"broken \x00 <b>"
    for pause_s in delivery.RETRY_AFTER_S:
        before = timezone.now()
        row = send()
        after = timezone.now()
        assert row.state == DeliveryState.PENDING
        # however long the attempt took: the pause begins where it ended
        assert before + dt.timedelta(seconds=pause_s) <= row.due_at
        assert row.due_at < after + dt.timedelta(seconds=1.1 * pause_s)
        due_in(3600)
        send()  # not due: nothing
        due_in(-1)
    row = send()
    assert (row.state, row.reason, row.attempts) == ("dead", "it answered 500", 9)
    assert len(receiver.got) == 9
    assert {(one.status, one.answer) for one in Attempt.objects.all()} == {(500, "broken \ufffd <b>")}

    services.replay(delivery_id=row.pk, actor="user:1")
    with pytest.raises(Conflict, match="is pending"):
        services.replay(delivery_id=row.pk, actor="user:1")
    receiver.status = 200
    row = send()
    assert (row.state, row.reason, row.attempts) == ("delivered", "", 10)
    assert [entry.action for entry in AuditEntry.objects.order_by("id")][-1] == "delivery.replay"


def test_the_next_try_is_announced_with_its_delay(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    OutboxMessage.objects.update(sent_at=timezone.now())
    receiver.status, receiver.headers = 429, {"Retry-After": "120"}
    before = timezone.now()
    send()
    after = timezone.now()
    message = OutboxMessage.objects.get(sent_at=None, task=DELIVER)
    assert before + dt.timedelta(seconds=120) <= message.available_at < after + dt.timedelta(seconds=132)


def test_a_receiver_that_hangs_is_left_after_the_time_limit(
    somebody: Somebody, receiver: Receiver, settings: Settings
) -> None:
    settings.WEBHOOK_TIMEOUT_S = 0.2
    endpoint(somebody, receiver)
    tell(somebody)
    receiver.hold = threading.Event()
    row = send()
    assert (row.state, row.reason) == ("pending", "no answer within 0.2 s")


def test_an_endless_answer_is_not_read(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    receiver.status, receiver.answer = 200, b"x" * 50_000_000
    row = send()
    assert row.state == "delivered"
    assert Attempt.objects.get().answer == "x" * 500


def test_a_redirect_is_a_failure_and_is_not_followed(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    tell(somebody)
    receiver.status = 307
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    row = send()
    assert (row.state, row.reason) == ("pending", "it answered 307")
    assert [got.path for got in receiver.got] == ["/in?token=abc"]


def test_a_hanging_receiver_holds_no_more_than_two_workers(somebody: Somebody, receiver: Receiver) -> None:
    endpoint(somebody, receiver)
    for number in range(3):
        tell(somebody, key=str(number))
    rows = list(Delivery.objects.order_by("id"))
    assert all(delivery._claim(row.pk) for row in rows[:2])
    OutboxMessage.objects.update(sent_at=timezone.now())
    third = send(rows[2])
    assert (receiver.got, third.attempts, third.state) == ([], 0, "pending")
    assert OutboxMessage.objects.filter(sent_at=None, kwargs__delivery_id=str(third.pk)).count() == 1


def test_the_database_refuses_what_must_not_be(somebody: Somebody, receiver: Receiver) -> None:
    hook, _ = endpoint(somebody, receiver)
    told = tell(somebody)
    row = the_one()
    bad: list[Any] = [
        lambda: Delivery.objects.create(alert=told, endpoint=hook, due_at=timezone.now()),
        lambda: Delivery.objects.create(
            alert=told, endpoint=hook, recipient="a@b.example", due_at=timezone.now()
        ),
        lambda: Delivery.objects.create(alert=told, due_at=timezone.now()),
        lambda: Delivery.objects.update(state="delivered"),
        lambda: Delivery.objects.update(state="lost"),
        lambda: WebhookEndpoint.objects.update(enabled=False),
        lambda: WebhookEndpoint.objects.update(events=[]),
        lambda: WebhookEndpoint.objects.update(previous_secret="x"),
        lambda: Alert.objects.update(event="something"),
        lambda: Alert.objects.update(words=""),
        lambda: Attempt.objects.bulk_create(
            [Attempt(tenant_id=row.tenant_id, delivery=row, number=1, took_ms=1.0) for _ in range(2)]
        ),
    ]
    for change in bad:
        with pytest.raises(IntegrityError), transaction.atomic():
            change()
