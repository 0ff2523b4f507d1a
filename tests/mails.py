"""What people were sent: mails wait for a worker, which tests are here."""

from django.core import mail
from django.core.mail import EmailMessage

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
