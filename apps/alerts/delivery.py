"""One attempt of one delivery: claimed, tried outside any transaction, recorded.

A worker that dies in between leaves a claim that runs out; then it is tried again, under the same message id,
so that a receiver who got it already can tell. An older holder's result counts for nothing.
"""

import datetime as dt
import json
import logging
import time
import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.alerts import sending, signing
from apps.alerts.addresses import shown
from apps.alerts.endpoints import secrets_of
from apps.alerts.models import Alert, Attempt, Delivery, DeliveryState, Event, Severity, WebhookEndpoint
from apps.alerts.sending import Outcome
from apps.alerts.services import alert, announce
from kernel import audit, clock
from kernel.sealing import Unreadable

logger = logging.getLogger(__name__)

# after each failure, as Standard Webhooks suggests: some thirty hours in all
RETRY_AFTER_S = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0)
RETRY_WISH_MAX_S = 3600.0  # of what a receiver may ask for in Retry-After
GIVE_UP_AFTER = dt.timedelta(days=5)  # without one success: the endpoint is switched off
CLAIM_S = 60.0
AT_ONCE = 2  # of one tenant: a receiver that hangs holds no more workers than this
BUSY_S = 2.0
ACTOR = "system:alerts"


@dataclass(frozen=True, slots=True)
class Claim:
    """A delivery that the caller may try now."""

    delivery: Delivery
    number: int


def deliver(*, delivery_id: uuid.UUID) -> None:
    """Try a delivery that is due; does nothing where it is not, or somebody else is at it."""
    claim = _claim(delivery_id)
    if claim is not None:
        record(claim, attempt(claim.delivery))


def ask_for_due(*, older_than_s: float, limit: int) -> int:
    """Announce deliveries in scope that were due this long ago and that nobody tries; return how many."""
    now = clock.now()
    with transaction.atomic():
        due = list(
            Delivery.objects.filter(
                state=DeliveryState.PENDING, due_at__lt=now - dt.timedelta(seconds=older_than_s)
            )
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
            .order_by("due_at")[:limit]
        )
        for delivery in due:
            announce(delivery)
    return len(due)


def attempt(delivery: Delivery) -> Outcome:
    """Send a delivery once and return what came of it."""
    if delivery.endpoint is None:
        return sending.mail(
            to=delivery.recipient,
            subject=f"[Attune] {Event(delivery.alert.event).label}",
            text=_letter(delivery.alert),
            message_id=f"alert-{delivery.pk.hex}",
        )
    try:
        secrets = secrets_of(delivery.endpoint)
    except Unreadable as error:
        return Outcome(delivered=False, error=f"its secret cannot be read ({error}): rotate it")
    body = payload(delivery.alert)
    signed = signing.headers(
        message_id=f"msg_{delivery.alert_id.hex}", timestamp=int(time.time()), body=body, secrets=secrets
    )
    return sending.post(delivery.endpoint.url, body, signed)


def payload(told: Alert) -> bytes:
    """Return a webhook's body: the same bytes at every attempt."""
    return json.dumps(
        {
            "type": told.event,
            "timestamp": told.created_at.astimezone(dt.UTC).isoformat(),
            "data": {
                **told.data,
                "id": str(told.pk),
                "severity": told.severity,
                "words": told.words,
                "done": told.done,
                "policy_id": _id(told.policy_id),
                "run_id": _id(told.run_id),
                "version_id": _id(told.version_id),
            },
        },
        separators=(",", ":"),
        sort_keys=True,
    ).encode()


def record(claim: Claim, outcome: Outcome) -> None:
    """Write down what came of an attempt, and what follows from it: done, another try, or a dead letter."""
    with transaction.atomic():
        # the endpoint before its deliveries, as whoever deletes it takes them
        endpoints = WebhookEndpoint.objects.select_for_update(of=("self",), no_key=True)
        endpoint = endpoints.filter(deliveries=claim.delivery.pk).first()
        rows = Delivery.objects.select_for_update(of=("self",)).select_related("alert")
        row = rows.filter(pk=claim.delivery.pk).first()
        # gone with its endpoint, decided, or somebody else's by now
        if row is None or row.state != DeliveryState.PENDING or row.attempts != claim.number:
            return
        Attempt.objects.create(
            tenant_id=row.tenant_id,
            delivery=row,
            number=claim.number,
            status=outcome.status,
            answer=outcome.answer,
            error=outcome.error,
            took_ms=outcome.took_ms,
        )
        row.claimed_until = None
        row.reason = outcome.error[:300]
        if outcome.delivered:
            row.state, row.delivered_at = DeliveryState.DELIVERED, timezone.now()
        else:
            _again_or_dead(row, outcome)
        row.save()
        if endpoint is not None:
            _endpoint_after(endpoint, outcome)


def _claim(delivery_id: uuid.UUID) -> Claim | None:
    now = clock.now()
    with transaction.atomic():
        row = (
            Delivery.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("alert", "endpoint")
            .filter(pk=delivery_id, state=DeliveryState.PENDING, due_at__lte=now)
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
            .first()
        )
        if row is None:
            return None
        if row.endpoint is not None and not row.endpoint.enabled:
            row.state = DeliveryState.DEAD
            row.reason = f"its endpoint is switched off: {row.endpoint.disabled_reason}"[:300]
            row.save()
            return None
        under_way = Delivery.objects.filter(
            tenant_id=row.tenant_id, state=DeliveryState.PENDING, claimed_until__gt=now
        )
        if under_way.count() >= AT_ONCE:
            announce(row, delay_s=BUSY_S)
            return None
        row.attempts += 1
        row.claimed_until = now + dt.timedelta(seconds=max(CLAIM_S, 2 * settings.WEBHOOK_TIMEOUT_S))
        row.save()
        return Claim(row, row.attempts)


def _again_or_dead(row: Delivery, outcome: Outcome) -> None:
    if outcome.gone or row.retries >= len(RETRY_AFTER_S):
        row.state = DeliveryState.DEAD
        return
    pause = max(RETRY_AFTER_S[row.retries], min(outcome.retry_after_s, RETRY_WISH_MAX_S))
    pause *= 1 + (row.pk.int % 100) / 1000  # those that failed together do not come back together
    row.retries += 1
    row.due_at = timezone.now() + dt.timedelta(seconds=pause)
    announce(row, delay_s=pause)


def _endpoint_after(endpoint: WebhookEndpoint, outcome: Outcome) -> None:
    """Note how an endpoint (locked by the caller) does;
    one that failed for days is switched off and its tenant told by mail."""
    now = timezone.now()
    if outcome.delivered:
        if endpoint.failing_since is not None:
            endpoint.failing_since = None
            endpoint.save(update_fields=["failing_since"])
        return
    endpoint.failing_since = endpoint.failing_since or now
    long_enough = now - endpoint.failing_since >= GIVE_UP_AFTER
    if endpoint.enabled and (long_enough or outcome.gone):
        why = (
            "it answered 410: gone"
            if outcome.gone
            else f"it has failed for {GIVE_UP_AFTER.days} days, last: {outcome.error}"
        )
        endpoint.enabled, endpoint.disabled_reason = False, why[:300]
        logger.warning("webhook endpoint %s is switched off: %s", endpoint.pk, why)
        audit.record(
            actor=ACTOR,
            action="webhook.disable",
            target=f"webhook:{endpoint.pk}",
            tenant_id=endpoint.tenant_id,
            detail={"reason": endpoint.disabled_reason},
        )
        alert(
            tenant_id=endpoint.tenant_id,
            event=Event.ENDPOINT_DISABLED,
            severity=Severity.WARNING,
            words=f"The webhook endpoint {shown(endpoint.url)} gets no more events: {why}.",
            done="It was switched off. Switch it on again when it answers; dead deliveries can be replayed.",
            data={"endpoint_id": str(endpoint.pk)},
            dedupe_key=f"endpoint-disabled:{endpoint.pk}:{endpoint.failing_since.isoformat()}",
        )
    endpoint.save()


def _letter(told: Alert) -> str:
    lines = [told.words, told.done]
    if told.policy_id:
        lines.append(f"Policy {told.policy_id}.")
    lines.append(f"{told.created_at:%Y-%m-%d %H:%M} UTC, {settings.WEB_URL}")
    return "\n\n".join(line for line in lines if line) + "\n"


def _id(value: uuid.UUID | None) -> str | None:
    return None if value is None else str(value)
