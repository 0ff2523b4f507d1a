"""The one clock that all processes have in common: the database's.

By it leases are given, held and found to be over: a machine whose own clock is wrong by more than a lease
would take everybody's work from them, or keep what it no longer does.
"""

import datetime as dt

from django.db import connection


def now() -> dt.datetime:
    """Return the time, in one query; it goes on within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: dt.datetime = cursor.fetchone()[0]
    return moment
