"""Say an alert, and bring it to its receiver."""

import datetime as dt
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.alerts import delivery, endpoints, services
from apps.alerts.models import Alert, Delivery, Event, Severity, WebhookEndpoint
from tests.apps.alerts.receiver import Receiver
from tests.tenants import Somebody


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
