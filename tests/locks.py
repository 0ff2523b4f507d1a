"""See that somebody waits for a lock, without guessing how long they take to get there."""

import time

from django.db import connection

WITHIN_S = 20.0


def wait_for_a_lock(*, beside: int = 0) -> None:
    """Return once more than `beside` sessions of this database wait for a lock."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            # a transaction sees the sessions of its first look again and again, and so none that came later
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN"
                " (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
            )
            (waiting,) = cursor.fetchone()
        if waiting > beside:
            return
        time.sleep(0.02)
    raise AssertionError("nobody waits for a lock")
