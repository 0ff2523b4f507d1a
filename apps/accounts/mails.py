"""Mails to people: written down in the transaction of what they speak of, brought by a worker, tried again.

A mail server that is away holds up nobody. What a mail says may open an account (links, codes), so it is
sealed, and gone from its row once it was sent, or has ended. A worker that dies between sending and writing it
down sends it again, under the same Message-ID; so does who replays one that was given up.
"""

import datetime as dt
import json
import logging
import uuid

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Mail, MailState
from kernel import audit, clock, outbox
from kernel.errors import Conflict, NotFound
from kernel.sealing import Unreadable, seal, unseal
from kernel.tenancy import system_scope

logger = logging.getLogger(__name__)

RETRY_AFTER_S = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0)
"""After each failure: seven hours in all, less than any link or invitation lasts."""
CLAIM_S = 60.0
LINKS_LAST = dt.timedelta(days=3)  # EMAIL_CONFIRMATION_EXPIRE_DAYS and PASSWORD_RESET_TIMEOUT
KEPT = dt.timedelta(days=7)  # the row, once it is over
_PURPOSE = "accounts.mail"


def post(*, kind: str, to: str, subject: str, text: str, lasts: dt.timedelta = LINKS_LAST) -> Mail:
    """Write a mail down and announce it, in the caller's transaction where there is one.

    `kind` says in a word what it is; after `lasts` what it says is of no use any more.
    """
    sealed = seal(json.dumps([subject, text]).encode(), purpose=_PURPOSE)
    now = clock.now()
    with system_scope("a mail to a person"), transaction.atomic():
        row = Mail.objects.create(
            kind=kind[:100], recipient=to, sealed=sealed, due_at=now, words_until=now + lasts
        )
        _announce(row)
    return row


def deliver(*, mail_id: uuid.UUID) -> None:
    """Try a mail that is due; does nothing where it is not, or somebody else is at it."""
    row = _claim(mail_id)
    if row is None:
        return
    try:
        subject, text = json.loads(unseal(row.sealed, purpose=_PURPOSE))
    except Unreadable as error:
        _record(row, str(error), hopeless=True)  # until that key is among SECRET_KEY_FALLBACKS
    else:
        reason = send(to=row.recipient, subject=subject, text=text, message_id=f"mail-{row.pk.hex}")
        _record(row, reason, hopeless=False)


def send(*, to: str, subject: str, text: str, message_id: str) -> str:
    """Send one mail; return "", or why it could not be sent: a mail server that is away is no error here.

    `message_id` is the same each time it is tried; the domain of the sender is added.
    """
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">")
    message = EmailMessage(
        subject=" ".join(subject.split()),
        body=text,
        to=[to],
        headers={"Message-ID": f"<{message_id}@{domain}>"},
    )
    try:
        message.send()
    except (OSError, ValueError) as error:  # smtplib's errors are OSError too
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def ask_for_due(*, older_than_s: float, limit: int) -> int:
    """Announce mails that were due this long ago and that nobody tries; return how many.

    Needs the system scope.
    """
    now = clock.now()
    with transaction.atomic():
        due = list(
            Mail.objects.filter(state=MailState.PENDING, due_at__lt=now - dt.timedelta(seconds=older_than_s))
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
            .order_by("due_at")[:limit]
        )
        for row in due:
            _announce(row)
    return len(due)


def replayable(now: dt.datetime) -> Q:
    """Return the condition that a mail was given up and what it says has not ended."""
    return Q(state=MailState.DEAD, words_until__gt=now) & ~Q(sealed="")


def replay(*, mail_id: uuid.UUID, actor: str) -> Mail:
    """Try a mail that was given up again from the start, under the same Message-ID; audited.

    Raises NotFound, or Conflict where it was not given up or its words are gone.
    """
    with system_scope("a mail to a person"), transaction.atomic():
        row = Mail.objects.select_for_update().filter(pk=mail_id).first()
        if row is None:
            raise NotFound("there is no such mail")
        if row.state != MailState.DEAD:
            raise Conflict(f"the mail is {row.state}, only dead ones are replayed")
        now = clock.now()
        if not row.sealed or row.words_until <= now:
            raise Conflict("what it said has ended; the person asks for another")
        row.state, row.retries, row.due_at, row.reason = MailState.PENDING, 0, now, ""
        row.save(update_fields=["state", "retries", "due_at", "reason"])
        audit.record(actor=actor, action="mail.replay", target=f"mail:{row.pk}", tenant_id=None)
        _announce(row)
    return row


def prune() -> int:
    """Delete the rows of mails that were over long ago, and the words of dead ones that have ended.

    Returns how many rows went. Needs the system scope.
    """
    Mail.objects.filter(state=MailState.DEAD, words_until__lte=clock.now()).exclude(sealed="").update(
        sealed=""
    )
    over = Mail.objects.exclude(state=MailState.PENDING).filter(due_at__lt=clock.now() - KEPT)
    return over.delete()[0]


def _announce(row: Mail, *, delay_s: float = 0.0) -> None:
    outbox.enqueue(
        task="workers.mails.deliver",
        queue="judge",  # the one for waiting on others
        tenant_id=None,
        kwargs={"mail_id": str(row.pk)},
        dedupe_key=f"mail:{row.pk}",
        delay_s=delay_s,
    )


def _claim(mail_id: uuid.UUID) -> Mail | None:
    now = clock.now()
    with system_scope("a mail to a person"), transaction.atomic():
        row = (
            Mail.objects.select_for_update(skip_locked=True)
            .filter(pk=mail_id, state=MailState.PENDING, due_at__lte=now)
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
            .first()
        )
        if row is not None:
            row.attempts += 1
            row.claimed_until = now + dt.timedelta(seconds=CLAIM_S)
            row.save(update_fields=["attempts", "claimed_until"])
    return row


def _record(claimed: Mail, reason: str, *, hopeless: bool) -> None:
    """Write down what came of an attempt: brought, another try, or given up."""
    with system_scope("a mail to a person"), transaction.atomic():
        row = Mail.objects.select_for_update().filter(pk=claimed.pk, state=MailState.PENDING).first()
        if row is None or row.attempts != claimed.attempts:  # somebody else's by now
            return
        row.claimed_until, row.reason = None, reason
        if not reason:
            row.state, row.sealed = MailState.SENT, ""
        elif hopeless or row.retries >= len(RETRY_AFTER_S):
            logger.error("a mail (%s) is given up: %s", row.kind, reason)
            row.state = MailState.DEAD
            row.sealed = row.sealed if row.words_until > clock.now() else ""
        else:
            wait_s = RETRY_AFTER_S[row.retries]
            row.retries += 1
            logger.warning("a mail (%s) is tried again in %.0f s: %s", row.kind, wait_s, reason)
            row.due_at = clock.now() + dt.timedelta(seconds=wait_s)
            _announce(row, delay_s=wait_s)
        row.save()
