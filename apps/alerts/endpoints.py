"""Webhook endpoints of a tenant: made, given another secret, switched on and off."""

import datetime as dt
import uuid
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from apps.alerts import signing
from apps.alerts.addresses import check_url, shown
from apps.alerts.models import Event, WebhookEndpoint
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.sealing import seal, unseal

MOST = 10  # of one tenant
OVERLAP = dt.timedelta(hours=24)  # both secrets sign


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
    """Give an endpoint another secret, shown this once; the old one signs beside it for `overlap`. Audited."""
    secret = signing.new_secret()
    with transaction.atomic():
        row = _locked(endpoint_id)
        row.previous_secret = row.secret
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


def secrets_of(endpoint: WebhookEndpoint) -> list[bytes]:
    """Return what signs for an endpoint now, newest first; raises kernel.sealing.Unreadable."""
    sealed = [endpoint.secret]
    if endpoint.previous_secret and endpoint.previous_until and endpoint.previous_until > timezone.now():
        sealed.append(endpoint.previous_secret)
    return [unseal(one, purpose=signing.PURPOSE) for one in sealed]


def _locked(endpoint_id: uuid.UUID) -> WebhookEndpoint:
    row = WebhookEndpoint.objects.select_for_update().filter(pk=endpoint_id).first()
    if row is None:
        raise NotFound("there is no such webhook endpoint")
    return row


def _events(events: Sequence[str]) -> list[str]:
    chosen = list(dict.fromkeys(events))
    unknown = [event for event in chosen if event not in Event.values]
    if unknown:
        raise InvalidInput(
            f"there is no event {unknown[0]!r}; there are {', '.join(Event.values)}", field="events"
        )
    if not chosen:
        raise InvalidInput("choose at least one event", field="events")
    return chosen
