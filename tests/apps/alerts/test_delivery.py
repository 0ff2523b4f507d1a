"""From an alert to the receiver: signed, once or again, until it is there or dead."""

import datetime as dt
import json
import threading
import time
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import Membership, Role
from apps.alerts import delivery, endpoints, services
from apps.alerts.models import Alert, Attempt, Delivery, DeliveryState, Event, Severity, WebhookEndpoint
from kernel.errors import Conflict
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.alerts.receiver import Receiver, verified
from tests.tenants import Somebody, add_somebody

DELIVER = "workers.alerts.deliver"


def tell(somebody: Somebody, *, key: str = "once", **fields: Any) -> Alert | None:
    with transaction.atomic():
        return services.alert(
            **{
                "tenant_id": somebody.tenant.id,
                "event": Event.VERSION_LIVE,
                "severity": Severity.INFO,
                "words": "default answers from version 3.",
                "policy_id": somebody.policy.id,
                "data": {"number": 3},
                "dedupe_key": key,
                **fields,
            }
        )


def endpoint(somebody: Somebody, receiver: Receiver, *events: str) -> tuple[WebhookEndpoint, str]:
    return endpoints.create_endpoint(
        tenant_id=somebody.tenant.id, url=receiver.url, events=events or (Event.VERSION_LIVE,), actor="user:1"
    )


def the_one() -> Delivery:
    return Delivery.objects.select_related("alert").get()


def due_in(seconds: float) -> None:
    Delivery.objects.update(due_at=timezone.now() + dt.timedelta(seconds=seconds))


def send(row: Delivery | None = None) -> Delivery:
    row = row or the_one()
    delivery.deliver(delivery_id=row.pk)
    row.refresh_from_db()
    return row


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


def test_an_endpoint_that_failed_for_days_is_switched_off_and_its_owner_told(
    somebody: Somebody, receiver: Receiver
) -> None:
    hook, _ = endpoint(somebody, receiver)
    receiver.status = 500
    tell(somebody)
    send()
    hook.refresh_from_db()
    assert hook.enabled
    assert hook.failing_since is not None

    WebhookEndpoint.objects.update(failing_since=timezone.now() - delivery.GIVE_UP_AFTER)
    due_in(-1)
    send(the_one())
    hook.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason) == (
        False,
        "it has failed for 5 days, last: it answered 500",
    )
    letter = Delivery.objects.get(recipient=somebody.user.email)
    delivery.deliver(delivery_id=letter.pk)
    assert [one.to for one in mail.outbox] == [[somebody.user.email]]
    assert "gets no more events: it has failed for 5 days" in mail.outbox[0].body
    assert "token=abc" not in mail.outbox[0].body

    # what was on its way ends as dead and says why; switched on again, it goes on
    due_in(-1)
    hooked = Delivery.objects.get(endpoint=hook)
    assert send(hooked).state == "dead"
    assert hooked.reason.startswith("its endpoint is switched off: it has failed")
    with pytest.raises(Conflict, match="switched off"):
        services.replay(delivery_id=hooked.pk, actor="user:1")
    endpoints.switch_on(endpoint_id=hook.pk, actor="user:1")
    receiver.status = 200
    services.replay(delivery_id=hooked.pk, actor="user:1")
    assert send(hooked).state == "delivered"


def test_one_success_ends_the_count_of_days(somebody: Somebody, receiver: Receiver) -> None:
    hook, _ = endpoint(somebody, receiver)
    WebhookEndpoint.objects.update(failing_since=timezone.now() - delivery.GIVE_UP_AFTER)
    tell(somebody)
    send()
    hook.refresh_from_db()
    assert (hook.enabled, hook.failing_since) == (True, None)


def test_gone_is_taken_at_its_word(somebody: Somebody, receiver: Receiver) -> None:
    hook, _ = endpoint(somebody, receiver)
    tell(somebody)
    receiver.status = 410
    assert send().state == "dead"
    hook.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason) == (False, "it answered 410: gone")


def test_both_secrets_sign_while_they_overlap(somebody: Somebody, receiver: Receiver) -> None:
    hook, old = endpoint(somebody, receiver)
    hook, new = endpoints.rotate_secret(endpoint_id=hook.pk, actor="user:1")
    tell(somebody)
    send()
    assert verified(receiver.got[0], old, now=time.time())
    assert verified(receiver.got[0], new, now=time.time())

    WebhookEndpoint.objects.update(previous_until=timezone.now())
    tell(somebody, key="later")
    send(Delivery.objects.get(alert__dedupe_key="later"))
    assert not verified(receiver.got[1], old, now=time.time())
    assert verified(receiver.got[1], new, now=time.time())


def test_a_secret_is_not_to_be_read_from_rows_audit_or_logs(
    somebody: Somebody, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook, secret = endpoint(somebody, receiver)
    receiver.status = 500
    tell(somebody)
    with caplog.at_level("DEBUG"):
        send()
    hidden = secret.removeprefix("whsec_")
    assert hidden not in hook.secret
    assert hidden not in json.dumps([entry.detail for entry in AuditEntry.objects.all()])
    assert hidden not in caplog.text
    assert "token=abc" not in json.dumps([entry.detail for entry in AuditEntry.objects.all()])


def test_after_a_change_of_the_installations_key_the_older_one_still_opens(
    somebody: Somebody, receiver: Receiver, settings: Settings
) -> None:
    _, secret = endpoint(somebody, receiver)
    older = settings.SECRET_KEY
    settings.SECRET_KEY = "another one by now"
    tell(somebody)
    row = send()
    assert row.reason == "its secret cannot be read (sealed under another SECRET_KEY): rotate it"
    assert receiver.got == []

    settings.SECRET_KEY_FALLBACKS = [older]
    due_in(-1)
    send(row)
    assert verified(receiver.got[0], secret, now=time.time())


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


def test_owners_and_admins_get_a_mail_each_and_others_none(somebody: Somebody) -> None:
    others = {
        role: add_somebody(tenant=somebody.tenant, email=f"{role}@acme.example") for role in Role.values
    }
    for role, one in others.items():
        Membership.objects.filter(user=one.user).update(role=role)
    left = add_somebody(tenant=somebody.tenant, email="left@acme.example").user
    Membership.objects.filter(user=left).update(role=Role.ADMIN)
    with system_scope("tests"):
        type(left).objects.filter(pk=left.pk).update(is_active=False)
    tell(somebody, event=Event.DRIFT_CROSSED, severity=Severity.WARNING, words="k3 is\n0.9", done="paused.")
    for row in Delivery.objects.all():
        delivery.deliver(delivery_id=row.pk)
        delivery.deliver(delivery_id=row.pk)
    told = sorted(to for one in mail.outbox for to in one.to)
    assert told == sorted(["admin@acme.example", "owner@acme.example", somebody.user.email])
    first = mail.outbox[0]
    assert first.subject == "[Attune] A drift gauge crossed its bound"
    assert first.body.startswith("k3 is 0.9\n\npaused.\n\nPolicy ")
    assert len({one.extra_headers["Message-ID"] for one in mail.outbox}) == 3


def test_of_many_alerts_of_a_kind_one_an_hour_is_mailed(somebody: Somebody) -> None:
    for number in range(3):
        tell(somebody, key=str(number), event=Event.RUN_FAILED, severity=Severity.WARNING)
    assert (Alert.objects.count(), Delivery.objects.count()) == (3, 1)
    tell(somebody, key="of another kind", event=Event.DRIFT_CROSSED, severity=Severity.WARNING)
    assert Delivery.objects.count() == 2
    Delivery.objects.update(created_at=timezone.now() - services.MAIL_EVERY)
    tell(somebody, key="later", event=Event.RUN_FAILED, severity=Severity.WARNING)
    assert Delivery.objects.count() == 3


def test_a_mail_server_that_is_away_is_tried_again(somebody: Somebody, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    tell(somebody, event=Event.RUN_FAILED, severity=Severity.WARNING)
    row = send()
    assert row.state == "pending"
    assert row.reason.startswith("ConnectionRefusedError")


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
