"""Who is told by mail, and how often."""

from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import Membership, Role
from apps.alerts import delivery, services
from apps.alerts.models import Alert, Delivery, Event, Severity
from kernel.tenancy import system_scope
from tests.apps.alerts.telling import send, tell
from tests.tenants import Somebody, add_somebody


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
