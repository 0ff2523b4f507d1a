"""One moment that many queries read: what is written meanwhile is not seen, and nobody waits."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def snapshot() -> Iterator[dt.datetime]:
    """Read everything in the block as of one moment, and yield that moment. Nothing can be written in it.

    The scope must stay the one that is entered: applying another one to the session is a query of its own.
    """
    if connection.in_atomic_block:
        raise RuntimeError("a snapshot is a transaction of its own")
    with connection.cursor() as cursor:
        # applies the scope to the session: within the transaction it would take the
        # snapshot before its level is set
        cursor.execute("SELECT 1")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT now()")
        (moment,) = cursor.fetchone() or (None,)
        assert isinstance(moment, dt.datetime)  # noqa: S101
        yield moment
