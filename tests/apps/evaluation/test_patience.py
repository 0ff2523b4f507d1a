"""A database that restarts is waited for; one that stays away is not waited for for ever."""

import pytest
from django.db import OperationalError

from apps.evaluation.patience import patiently

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_asks_again_until_there_is_an_answer() -> None:
    asked = []

    def call() -> str:
        asked.append(1)
        if len(asked) < 3:
            raise OperationalError("the connection is closed")
        return "here"

    assert patiently(call, every_s=0.0) == "here"
    assert len(asked) == 3


def test_it_gives_up_with_the_databases_own_error() -> None:
    def call() -> None:
        raise OperationalError("gone")

    with pytest.raises(OperationalError, match="gone"):
        patiently(call, within_s=0.0, every_s=0.0)


def test_other_errors_are_not_for_waiting() -> None:
    asked = []

    def call() -> None:
        asked.append(1)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        patiently(call, every_s=0.0)
    assert len(asked) == 1
