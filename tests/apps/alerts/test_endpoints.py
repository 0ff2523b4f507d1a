"""What an endpoint signs with, and when it is given up."""

import json
import threading
import time

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.alerts import delivery, endpoints, services
from apps.alerts.models import Delivery, WebhookEndpoint
from kernel.errors import Conflict
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.alerts.receiver import Receiver, verified
from tests.apps.alerts.telling import due_in, endpoint, send, tell, the_one
from tests.locks import wait_for_a_lock
from tests.tenants import Somebody, add_somebody


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


def test_of_secrets_rotated_twice_all_sign_while_they_overlap(somebody: Somebody, receiver: Receiver) -> None:
    hook, first = endpoint(somebody, receiver)
    made = [endpoints.rotate_secret(endpoint_id=hook.pk, actor="user:1")[1] for _ in range(4)]
    tell(somebody)
    send()
    signing = [verified(receiver.got[0], one, now=time.time()) for one in (first, *made)]
    assert signing == [False, True, True, True, True]  # the oldest of five is too many

    WebhookEndpoint.objects.update(previous_until=timezone.now())
    endpoints.rotate_secret(endpoint_id=hook.pk, actor="user:1")
    tell(somebody, key="later")
    send(Delivery.objects.get(alert__dedupe_key="later"))
    assert [verified(receiver.got[1], one, now=time.time()) for one in made] == [False, False, False, True]


def test_a_secret_that_cannot_be_read_is_rotated_away(
    somebody: Somebody, receiver: Receiver, settings: Settings
) -> None:
    hook, _ = endpoint(somebody, receiver)
    settings.SECRET_KEY = "another one by now"
    _, new = endpoints.rotate_secret(endpoint_id=hook.pk, actor="user:1")
    tell(somebody)
    assert send().state == "delivered"
    assert verified(receiver.got[0], new, now=time.time())


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


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
def test_of_two_that_are_made_at_once_only_one_is_the_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    acme = add_somebody()
    real, made = endpoints.seal, []

    def make() -> None:
        with tenant_scope(acme.tenant.pk):
            try:
                endpoints.create_endpoint(
                    tenant_id=acme.tenant.pk,
                    url="http://127.0.0.1:9/hook",
                    events=["version.live"],
                    actor="user:1",
                )
                made.append("made")
            except Conflict as error:
                made.append(error.message)

    def make_another() -> None:
        try:
            make()
        finally:
            connection.close()

    for _ in range(endpoints.MOST - 1):
        make()
    second = threading.Thread(target=make_another)

    def sealed(value: bytes, *, purpose: str) -> str:
        if second.ident is None:  # the first has counted and not written yet
            second.start()
            wait_for_a_lock()
        return real(value, purpose=purpose)

    monkeypatch.setattr(endpoints, "seal", sealed)
    make()
    second.join()
    assert sorted(made[endpoints.MOST - 1 :]) == ["a tenant has at most 10 webhook endpoints", "made"]
    with tenant_scope(acme.tenant.pk):
        assert WebhookEndpoint.objects.count() == endpoints.MOST
