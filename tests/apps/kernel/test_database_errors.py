"""No error of the database says what people wrote, whoever shows, logs or keeps it."""

import logging
import traceback
import uuid
from collections.abc import Callable

import pytest
from django.db import DatabaseError, DataError, IntegrityError, connection, transaction
from psycopg.errors import CheckViolation, InvalidTextRepresentation

from apps.conversations.models import Feedback, Session, Turn
from kernel.redaction import RedactingFormatter
from kernel.tenancy import tenant_scope
from tests.tenants import add_somebody

pytestmark = pytest.mark.django_db

SECRET = "I was born in Ulm"


def write_feedback() -> None:
    somebody = add_somebody()
    with tenant_scope(somebody.tenant.id):
        session = Session.objects.create(user=somebody.user, policy=somebody.policy)
        turn = Turn.objects.create(session=session, policy=somebody.policy, messages=[], state="failed")
        Feedback.objects.create(turn=turn, user=somebody.user, score=7, correction=SECRET)


def run(sql: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [value])


@pytest.mark.parametrize(
    ("fails", "kind", "says"),
    [
        (write_feedback, IntegrityError, "feedback"),
        (lambda: run("SELECT %s::uuid", SECRET), DataError, "invalid input syntax for type uuid: …"),
        (
            lambda: run("SELECT %s::jsonb", f'{{"a": {SECRET}'),
            DataError,
            "invalid input syntax for type json",
        ),
        (
            lambda: run("SELECT %s::int", f'1"\n"{SECRET}'),
            DataError,
            "invalid input syntax for type integer: …",
        ),
    ],
)
def test_what_people_wrote_is_in_no_error(
    fails: Callable[[], None], kind: type[DatabaseError], says: str
) -> None:
    with pytest.raises(kind) as raised, transaction.atomic():
        fails()

    assert says in str(raised.value)
    shown = "".join(traceback.format_exception(raised.value))
    record = logging.LogRecord("x", logging.ERROR, "", 0, "%s", (raised.value,), (kind, raised.value, None))
    for text in (str(raised.value), repr(raised.value), shown, RedactingFormatter().format(record)):
        assert "Ulm" not in text.replace(__file__, "")
        assert "DETAIL" not in text
        assert "CONTEXT" not in text


def test_who_needs_the_details_has_them() -> None:
    with pytest.raises(DataError) as unread, transaction.atomic():
        run("SELECT %s::jsonb", f'{{"a": {SECRET}')
    cause = unread.value.__cause__
    assert isinstance(cause, InvalidTextRepresentation)
    assert cause.diag.message_detail == 'Token "I" is invalid.'

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        write_feedback()
    cause = refused.value.__cause__
    assert isinstance(cause, CheckViolation)
    assert (cause.diag.table_name, cause.diag.constraint_name) == (
        "conversations_feedback",
        "feedback_score_known",
    )


def test_an_error_without_a_row_is_as_it_was() -> None:
    with pytest.raises(DatabaseError, match=r'^relation "nowhere" does not exist$'), transaction.atomic():
        run("SELECT FROM nowhere WHERE %s = ''", str(uuid.uuid4()))
