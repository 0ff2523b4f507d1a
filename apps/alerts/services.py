"""Say what happened, once, in the transaction in which it happened; and send it later."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Membership, Role
from apps.alerts.models import Alert, Delivery, DeliveryState, Event, Severity, WebhookEndpoint
from kernel import audit, outbox
from kernel.errors import Conflict, NotFound

MAIL_EVERY = dt.timedelta(hours=1)  # of one kind about one policy; the rows and webhooks hold all
MAILED_TO = (Role.OWNER, Role.ADMIN)


def alert(
    *,
    tenant_id: uuid.UUID,
    event: Event,
    severity: Severity,
    words: str,
    dedupe_key: str,
    done: str = "",
    policy_id: uuid.UUID | None = None,
    run_id: uuid.UUID | None = None,
    version_id: uuid.UUID | None = None,
    data: Mapping[str, Any] | None = None,
) -> Alert | None:
    """Write an alert and its deliveries in the caller's transaction; None where it was said before.

    `data` is JSON that webhooks carry; it must hold no secret and nothing that people wrote.
    """
    made = Alert(
        tenant_id=tenant_id,
        event=event,
        severity=severity,
        words=" ".join(words.split())[:1000],
        done=" ".join(done.split())[:500],
        policy_id=policy_id,
        run_id=run_id,
        version_id=version_id,
        data=dict(data or {}),
        dedupe_key=dedupe_key[:200],
    )
    mailed = _mailed_to(made)
    Alert.objects.bulk_create([made], ignore_conflicts=True)
    if not Alert.objects.filter(pk=made.pk).exists():
        return None
    wanted = WebhookEndpoint.objects.filter(tenant_id=tenant_id, enabled=True, events__contains=[event.value])
    now = timezone.now()
    rows = [
        *(Delivery(tenant_id=tenant_id, alert=made, endpoint=endpoint, due_at=now) for endpoint in wanted),
        *(Delivery(tenant_id=tenant_id, alert=made, recipient=address, due_at=now) for address in mailed),
    ]
    Delivery.objects.bulk_create(rows)
    for row in rows:
        announce(row)
    return made


def announce(delivery: Delivery, *, delay_s: float = 0.0) -> None:
    """Wake a worker for a delivery, in the caller's transaction."""
    outbox.enqueue(
        task="workers.alerts.deliver",
        queue="judge",  # the one for waiting on others: publishing must not queue behind a slow receiver
        tenant_id=delivery.tenant_id,
        kwargs={"delivery_id": str(delivery.pk)},
        dedupe_key=f"deliver:{delivery.pk}",
        delay_s=delay_s,
    )


def replay(*, delivery_id: uuid.UUID, actor: str) -> Delivery:
    """Try a dead delivery again from the start; audited.

    Raises Conflict where it is not dead or its endpoint is off.
    """
    with transaction.atomic():
        row = (
            Delivery.objects.select_for_update(of=("self",))
            .select_related("endpoint")
            .filter(pk=delivery_id)
            .first()
        )
        if row is None:
            raise NotFound("there is no such delivery")
        if row.state != DeliveryState.DEAD:
            raise Conflict(f"the delivery is {row.state}, only dead ones are replayed")
        if row.endpoint is not None and not row.endpoint.enabled:
            raise Conflict(f"its endpoint is switched off: {row.endpoint.disabled_reason}")
        row.state = DeliveryState.PENDING
        row.retries = 0
        row.due_at = timezone.now()
        row.reason = ""
        row.save()
        audit.record(
            actor=actor, action="delivery.replay", target=f"delivery:{row.pk}", tenant_id=row.tenant_id
        )
        announce(row)
    return row


def _mailed_to(alert: Alert) -> list[str]:
    """Return whom an alert is mailed to: the tenant's owners and admins,
    unless they had one like it just now."""
    if alert.severity == Severity.INFO:
        return []
    if alert.policy_id is not None and _mailed_lately(alert):
        return []
    members = Membership.objects.filter(
        tenant_id=alert.tenant_id, role__in=MAILED_TO, user__is_active=True
    ).order_by("created_at", "id")
    return list(members.values_list("user__email", flat=True))


def _mailed_lately(alert: Alert) -> bool:
    recent = Delivery.objects.filter(
        tenant_id=alert.tenant_id,
        alert__event=alert.event,
        alert__policy_id=alert.policy_id,
        created_at__gt=timezone.now() - MAIL_EVERY,
    ).exclude(recipient="")
    return recent.exists()
