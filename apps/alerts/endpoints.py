"""Webhook endpoints of a tenant: made, given another secret, switched on and off."""

import datetime as dt
import uuid
from collections.abc import Sequence
from contextlib import suppress

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Tenant
from apps.alerts import signing
from apps.alerts.addresses import check_url, shown
from apps.alerts.models import (
    TOLD_OF,
    Alert,
    Delivery,
    DeliveryState,
    Event,
    Severity,
    WebhookEndpoint,
)
from apps.alerts.services import announce
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.sealing import Unreadable, seal, unseal

MOST = 10  # of one tenant
OVERLAP = dt.timedelta(hours=24)  # both secrets sign
MOST_BESIDE = 3  # secrets beside the present one: a header of four signatures


def create_endpoint(
    *, tenant_id: uuid.UUID, url: str, events: Sequence[str], actor: str
) -> tuple[WebhookEndpoint, str]:
    """Make an endpoint and return it with its secret, which is shown this once; audited.

    Raises InvalidInput naming the field, Conflict past ten endpoints.
    """
    chosen = _events(events)
    checked = check_url(url)
    secret = signing.new_secret()
    with transaction.atomic():
        # of two at once the second counts the first one
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
        if WebhookEndpoint.objects.filter(tenant_id=tenant_id).count() >= MOST:
            raise Conflict(f"a tenant has at most {MOST} webhook endpoints")
        made = WebhookEndpoint.objects.create(
            tenant_id=tenant_id, url=checked, events=chosen, secret=seal(secret, purpose=signing.PURPOSE)
        )
        audit.record(
            actor=actor,
            action="webhook.create",
            target=f"webhook:{made.pk}",
            tenant_id=tenant_id,
            detail={"url": shown(checked), "events": chosen},
        )
    return made, signing.shown(secret)


def rotate_secret(
    *, endpoint_id: uuid.UUID, actor: str, overlap: dt.timedelta = OVERLAP
) -> tuple[WebhookEndpoint, str]:
    """Give an endpoint another secret, shown this once; the old one signs beside it for `overlap`.

    So do those before it that still signed, up to `MOST_BESIDE`: of a double click or a lost answer, the one that the
    receiver knows is not the last. Audited.
    """
    secret = signing.new_secret()
    with transaction.atomic():
        row = _locked(endpoint_id)
        row.previous_secret = " ".join([row.secret, *_beside(row)][:MOST_BESIDE])
        row.previous_until = timezone.now() + overlap
        row.secret = seal(secret, purpose=signing.PURPOSE)
        row.save()
        audit.record(
            actor=actor, action="webhook.rotate", target=f"webhook:{row.pk}", tenant_id=row.tenant_id
        )
    return row, signing.shown(secret)


def switch_on(*, endpoint_id: uuid.UUID, actor: str) -> WebhookEndpoint:
    """Let an endpoint be told of events again; audited."""
    with transaction.atomic():
        row = _locked(endpoint_id)
        row.enabled, row.disabled_reason, row.failing_since = True, "", None
        row.save()
        audit.record(
            actor=actor, action="webhook.enable", target=f"webhook:{row.pk}", tenant_id=row.tenant_id
        )
    return row


def switch_off(*, endpoint_id: uuid.UUID, actor: str, reason: str) -> WebhookEndpoint:
    """Stop telling an endpoint anything; what is on its way to it ends as dead. Audited."""
    with transaction.atomic():
        row = _locked(endpoint_id)
        row.enabled, row.disabled_reason = False, (reason or "switched off")[:300]
        row.save()
        audit.record(
            actor=actor,
            action="webhook.disable",
            target=f"webhook:{row.pk}",
            tenant_id=row.tenant_id,
            detail={"reason": row.disabled_reason},
        )
    return row


def change_endpoint(
    *,
    endpoint_id: uuid.UUID,
    actor: str,
    url: str | None = None,
    events: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> WebhookEndpoint:
    """Change where an endpoint is, what it is told of, or whether it is; None leaves as it is. Audited.

    What is on its way goes to the new address. Raises InvalidInput naming the field.
    """
    checked = check_url(url) if url is not None else None
    chosen = _events(events) if events is not None else None
    with transaction.atomic():
        row = _locked(endpoint_id)
        detail: dict[str, object] = {}
        if checked is not None and checked != row.url:
            row.url, detail["url"] = checked, shown(checked)
        if chosen is not None and chosen != row.events:
            row.events = detail["events"] = chosen
        if detail:
            row.save(update_fields=["url", "events"])
            audit.record(
                actor=actor,
                action="webhook.change",
                target=f"webhook:{row.pk}",
                tenant_id=row.tenant_id,
                detail=detail,
            )
        if enabled is not None and enabled != row.enabled:
            if enabled:
                return switch_on(endpoint_id=endpoint_id, actor=actor)
            return switch_off(endpoint_id=endpoint_id, actor=actor, reason=f"switched off by {actor}")
    return row


def delete_endpoint(*, endpoint_id: uuid.UUID, actor: str) -> None:
    """Delete an endpoint with its deliveries, those on their way too; audited. The alerts stay."""
    with transaction.atomic():
        row = _locked(endpoint_id)
        audit.record(
            actor=actor,
            action="webhook.delete",
            target=f"webhook:{row.pk}",
            tenant_id=row.tenant_id,
            detail={"url": shown(row.url)},
        )
        row.delete()


def send_test(*, endpoint_id: uuid.UUID, actor: str) -> Delivery:
    """Send an endpoint a test, which goes the way of every alert; audited.

    Raises Conflict where the endpoint is off, or a test is on its way to it already.
    """
    with transaction.atomic():
        row = _locked(endpoint_id)
        if not row.enabled:
            raise Conflict(f"the endpoint is switched off: {row.disabled_reason}")
        under_way = Delivery.objects.filter(
            endpoint=row, state=DeliveryState.PENDING, alert__event=Event.ENDPOINT_TEST
        )
        if under_way.exists():
            raise Conflict("a test is on its way to this endpoint", code="test_under_way")
        told = Alert.objects.create(
            tenant_id=row.tenant_id,
            event=Event.ENDPOINT_TEST,
            severity=Severity.INFO,
            words="Somebody tries whether this reaches you.",
            dedupe_key=f"test:{uuid.uuid4()}",
        )
        delivery = Delivery.objects.create(
            tenant_id=row.tenant_id, alert=told, endpoint=row, due_at=timezone.now()
        )
        announce(delivery)
        audit.record(actor=actor, action="webhook.test", target=f"webhook:{row.pk}", tenant_id=row.tenant_id)
    return delivery


def secrets_of(endpoint: WebhookEndpoint) -> list[bytes]:
    """Return what signs for an endpoint now, newest first; raises kernel.sealing.Unreadable for the newest."""
    found = [unseal(endpoint.secret, purpose=signing.PURPOSE)]
    for sealed in _beside(endpoint):
        # one that cannot be read any more is why the secret was changed: it signs nothing
        with suppress(Unreadable):
            found.append(unseal(sealed, purpose=signing.PURPOSE))
    return found


def _beside(endpoint: WebhookEndpoint) -> list[str]:
    """Return the sealed secrets that still sign beside the present one, newest first."""
    if not (
        endpoint.previous_secret and endpoint.previous_until and endpoint.previous_until > timezone.now()
    ):
        return []
    return endpoint.previous_secret.split()


def _locked(endpoint_id: uuid.UUID) -> WebhookEndpoint:
    row = WebhookEndpoint.objects.select_for_update().filter(pk=endpoint_id).first()
    if row is None:
        raise NotFound("there is no such webhook endpoint")
    return row


def _events(events: Sequence[str]) -> list[str]:
    chosen = list(dict.fromkeys(events))
    known = [event.value for event in TOLD_OF]
    unknown = [event for event in chosen if event not in known]
    if unknown:
        raise InvalidInput(f"there is no event {unknown[0]!r}; there are {', '.join(known)}", field="events")
    if not chosen:
        raise InvalidInput("choose at least one event", field="events")
    return chosen
