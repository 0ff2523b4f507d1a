"""What the tests' own look at locks sees."""

import threading

import pytest
from django.db import connection, transaction

from tests.locks import wait_for_a_lock


@pytest.mark.django_db(transaction=True)
def test_a_session_that_began_after_the_first_look_is_seen_waiting() -> None:
    def lock() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(7)")

    def wait() -> None:
        try:
            lock()
        finally:
            connection.close()

    with transaction.atomic():
        lock()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity")
        waits = threading.Thread(target=wait)
        waits.start()
        wait_for_a_lock()
    waits.join()
