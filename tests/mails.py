"""What people were sent: mails wait for a worker, which tests are here."""

from typing import Any

from django.core import mail
from django.core.mail import EmailMessage
from django.utils import timezone

from apps.accounts import mails
from apps.accounts.models import Mail, MailState
from kernel.tenancy import system_scope


def sent() -> list[EmailMessage]:
    """Bring every mail that waits; return all that were brought so far, oldest first."""
    with system_scope("tests"):
        waiting = list(
            Mail.objects.filter(state=MailState.PENDING).order_by("id").values_list("pk", flat=True)
        )
    for one in waiting:
        mails.deliver(mail_id=one)
    return list(mail.outbox)


def away(settings: Any) -> None:
    """Let the mail server be away: nothing listens on the port of the discard service."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9


def back(settings: Any) -> None:
    """Let it be there again, and the waiting be over."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    with system_scope("tests"):
        Mail.objects.update(due_at=timezone.now())
