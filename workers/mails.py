"""Bring mails."""

import uuid

from apps.accounts import mails
from workers.tasks import task


@task("workers.mails.deliver")
def deliver(*, mail_id: str) -> None:
    """Try one mail; a server that is away is asked again by a later message."""
    mails.deliver(mail_id=uuid.UUID(mail_id))
