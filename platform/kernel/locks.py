"""Rows that are locked, always in the same order, so that nobody waits for somebody who waits for them.

`alone` is for work instead of rows: one process at a time does it, and nobody waits.

**Between tables**, whoever wants several takes them from left to right, leaving out what is not needed:
session → turn → sample or judgement → policy → what is counted and announced (spend, outbox). A run comes
before its policy, its tenant's account and then the samples that it holds. One that holds a turn asks for no
session. A lesson comes before its policy and that before preferences; a turn before the person it speaks for,
and that person before a lesson and before preferences; an endpoint before its deliveries.
**Within a table**, several rows are taken by primary key (`locked`); a single statement that changes many
locks them in whatever order it finds them, so they are locked first. What can as well be done later is
skipped where it is held.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def locked(rows: QuerySet[M], *, skip_locked: bool = False, to_delete: bool = False) -> QuerySet[M]:
    """Return rows, locked once they are read and until the transaction ends, in the one order.

    Rows that refer to them may be written meanwhile, unless they are locked `to_delete`. With `skip_locked`
    those that somebody else holds are left out.
    """
    return rows.select_for_update(of=("self",), no_key=not to_delete, skip_locked=skip_locked).order_by("pk")


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Hold the place of the one process that does what is named, where it is free; says whether it was.

    For work that takes longer than a transaction should. A holder that dies frees its place with its
    connection.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        (free,) = cursor.fetchone()
    try:
        yield free
    finally:
        if free:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])
