"""Mails on their way: brought once, tried again, given up and replayed, and how long each keeps its words."""

import datetime as dt
import uuid
from typing import Any

import pytest
from allauth.account import app_settings as account_settings
from django.conf import settings
from django.core import mail
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts import mails
from apps.accounts.models import Mail, User
from apps.accounts.services import create_tenant
from kernel.errors import Conflict, NotFound
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.mails import away, back, sent
from workers.mails import deliver


def test_a_mail_is_brought_once_and_its_words_are_gone(eve: User) -> None:
    row = mails.post(kind="test", to=eve.email, subject="a\nb", text="the secret link")
    again = {"mail_id": row.pk}
    mails.deliver(**again)
    mails.deliver(**again)
    (one,) = mail.outbox
    assert (one.subject, one.body, one.to) == ("a b", "the secret link", [eve.email])
    assert one.extra_headers["Message-ID"] == f"<mail-{row.pk.hex}@localhost>"
    with system_scope("tests"):
        row.refresh_from_db()
        assert (row.state, row.sealed, row.attempts, row.reason) == ("sent", "", 1, "")


def test_a_mail_is_given_up_after_hours_and_keeps_its_words_until_they_have_ended(
    eve: User, settings: Any
) -> None:
    away(settings)
    row = mails.post(kind="test", to=eve.email, subject="a", text="b")
    waits = []
    for _ in range(len(mails.RETRY_AFTER_S) + 1):
        before = timezone.now()
        mails.deliver(mail_id=row.pk)
        mails.deliver(mail_id=row.pk)  # it is not due yet
        with system_scope("tests"):
            row.refresh_from_db()
            waits.append(round((row.due_at - before).total_seconds()))
            Mail.objects.update(due_at=timezone.now())
    assert waits[:-1] == list(mails.RETRY_AFTER_S)
    assert (row.state, row.sealed != "", row.attempts) == ("dead", True, 7)
    assert row.words_until - row.created_at > dt.timedelta(days=2, hours=23)
    with system_scope("tests"):
        assert mails.ask_for_due(older_than_s=-1, limit=10) == 0
        assert mails.prune() == 0
        row.refresh_from_db()
        assert row.sealed != ""
        Mail.objects.update(words_until=timezone.now())
        assert mails.prune() == 0
        row.refresh_from_db()
        assert row.sealed == ""
        Mail.objects.update(due_at=timezone.now() - mails.KEPT)
        assert mails.prune() == 1


def given_up(settings: Any, **named: Any) -> Mail:
    """Return a mail that was tried to the end, with the mail server there again."""
    away(settings)
    row = mails.post(kind="test", to="eve@example.org", subject="a", text="the secret link", **named)
    for _ in range(len(mails.RETRY_AFTER_S) + 1):
        mails.deliver(mail_id=row.pk)
        with system_scope("tests"):
            Mail.objects.update(due_at=timezone.now())
    back(settings)
    with system_scope("tests"):
        row.refresh_from_db()
    assert row.state == "dead"
    return row


def test_a_mail_that_was_given_up_is_replayed_once_under_the_same_id(eve: User, settings: Any) -> None:
    del eve
    row = given_up(settings)
    with system_scope("tests"):
        OutboxMessage.objects.update(sent_at=timezone.now())
    mails.replay(mail_id=row.pk, actor="user:operator")
    with pytest.raises(Conflict, match="the mail is pending, only dead ones are replayed"):
        mails.replay(mail_id=row.pk, actor="user:operator")
    with system_scope("tests"):
        (told,) = OutboxMessage.objects.filter(sent_at=None)
        (audited,) = AuditEntry.objects.filter(action="mail.replay")
    assert (audited.actor, audited.target, audited.tenant_id) == ("user:operator", f"mail:{row.pk}", None)
    deliver(**told.kwargs)
    deliver(**told.kwargs)
    (one,) = mail.outbox
    assert (one.body, one.extra_headers["Message-ID"]) == (
        "the secret link",
        f"<mail-{row.pk.hex}@localhost>",
    )
    with pytest.raises(Conflict, match="the mail is sent, only dead ones are replayed"):
        mails.replay(mail_id=row.pk, actor="user:operator")
    with system_scope("tests"):
        row.refresh_from_db()
    assert (row.state, row.sealed, row.attempts, row.retries) == ("sent", "", 8, 0)


def test_a_replayed_mail_has_all_its_tries_and_an_older_workers_result_counts_for_nothing(
    eve: User, settings: Any
) -> None:
    del eve
    row = given_up(settings)
    mails.replay(mail_id=row.pk, actor="user:operator")
    away(settings)
    mails.deliver(mail_id=row.pk)
    mails._record(row, "", hopeless=False)  # of the try before: it says that it sent it
    with system_scope("tests"):
        row.refresh_from_db()
    assert (row.state, row.attempts, row.retries) == ("pending", 8, 1)


@pytest.mark.parametrize("gone", [{"sealed": ""}, {"words_until": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}])
def test_a_mail_whose_words_have_ended_is_not_replayed(
    eve: User, settings: Any, gone: dict[str, Any]
) -> None:
    del eve
    row = given_up(settings)
    with system_scope("tests"):
        Mail.objects.update(**gone)
    with pytest.raises(Conflict, match="what it said has ended; the person asks for another"):
        mails.replay(mail_id=row.pk, actor="user:operator")
    with system_scope("tests"):
        assert Mail.objects.get().state == "dead"
        assert not AuditEntry.objects.filter(action="mail.replay").exists()


def test_a_mail_with_a_code_is_given_up_with_its_words(visited: Any, eve: User, settings: Any) -> None:
    visited.send_mail("account/email/login_code", eve.email, {"code": "ABC-123"})
    visited.send_mail("account/email/password_reset_key", eve.email, {"password_reset_url": "http://x/"})
    away(settings)
    with system_scope("tests"):
        lasting = {row.kind: row.words_until - row.created_at for row in Mail.objects.all()}
        # as it is when all tries are over
        for row in Mail.objects.all():
            Mail.objects.filter(pk=row.pk).update(
                retries=len(mails.RETRY_AFTER_S), words_until=row.words_until - dt.timedelta(hours=8)
            )
            mails.deliver(mail_id=row.pk)
        kept = {row.kind: (row.state, row.sealed != "") for row in Mail.objects.all()}
    assert {kind: round(span.total_seconds()) for kind, span in lasting.items()} == {
        "account/email/login_code": 15 * 60,
        "account/email/password_reset_key": 3 * 24 * 3600,
    }
    assert kept == {
        "account/email/login_code": ("dead", False),
        "account/email/password_reset_key": ("dead", True),
    }


def test_links_last_as_long_as_they_are_taken_to() -> None:
    assert mails.LINKS_LAST.days == account_settings.EMAIL_CONFIRMATION_EXPIRE_DAYS
    assert dt.timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT) == mails.LINKS_LAST


def test_a_mail_that_is_not_there_is_not_replayed(eve: User) -> None:
    del eve
    with pytest.raises(NotFound):
        mails.replay(mail_id=uuid.uuid4(), actor="user:operator")


def test_a_mail_whose_worker_died_is_brought_by_another_under_the_same_id(eve: User) -> None:
    row = mails.post(kind="test", to=eve.email, subject="a", text="b")
    with system_scope("tests"):
        Mail.objects.update(attempts=1, claimed_until=timezone.now() + dt.timedelta(seconds=5))
        mails.deliver(mail_id=row.pk)  # somebody else is at it
        assert mails.ask_for_due(older_than_s=-1, limit=10) == 0
        assert mail.outbox == []
        Mail.objects.update(claimed_until=timezone.now() - dt.timedelta(seconds=1))
        OutboxMessage.objects.update(sent_at=timezone.now())
        assert mails.ask_for_due(older_than_s=-1, limit=10) == 1
        (told,) = OutboxMessage.objects.filter(sent_at=None)
    deliver(**told.kwargs)
    assert mail.outbox[0].extra_headers["Message-ID"] == f"<mail-{row.pk.hex}@localhost>"


def test_a_mail_under_another_secret_key_is_given_up(eve: User, settings: Any) -> None:
    row = mails.post(kind="test", to=eve.email, subject="a", text="b")
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another one"
    mails.deliver(mail_id=row.pk)
    with system_scope("tests"):
        row.refresh_from_db()
    assert (row.state, row.reason) == ("dead", "sealed under another SECRET_KEY")
    settings.SECRET_KEY_FALLBACKS = [before]
    mails.replay(mail_id=row.pk, actor="user:operator")
    assert [one.body for one in sent()] == ["b"]


def test_no_tenants_scope_sees_a_mail(eve: User) -> None:
    with system_scope("tests"):
        tenant = create_tenant(slug="acme", name="Acme", actor="system:tests")
    mails.post(kind="test", to=eve.email, subject="a", text="b")
    with tenant_scope(tenant.pk):
        assert not Mail.objects.exists()
    with system_scope("tests"):
        assert Mail.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "lost"},
        {"sealed": ""},
        {"state": "sent"},
        {"state": "dead", "claimed_until": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)},
    ],
)
def test_no_row_waits_without_words_or_keeps_them_once_it_is_sent(eve: User, wrong: dict[str, Any]) -> None:
    mails.post(kind="test", to=eve.email, subject="a", text="b")
    with system_scope("tests"), pytest.raises(IntegrityError), transaction.atomic():
        Mail.objects.update(**wrong)
