"""Whose preferences: the key's user or, where a request names one, that user's end user."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from apps.accounts.models import EndUser


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a policy's preferences belong to."""

    policy_id: uuid.UUID
    user_id: uuid.UUID
    end_user_id: uuid.UUID | None = None

    def rows(self) -> dict[str, Any]:
        """Return the filter that finds what is theirs and nothing else."""
        found: dict[str, Any] = {"policy_id": self.policy_id, "user_id": self.user_id}
        if self.end_user_id is None:
            return {**found, "end_user__isnull": True}
        return {**found, "end_user_id": self.end_user_id}

    def columns(self) -> dict[str, Any]:
        """Return the values of a new row of theirs."""
        return {"policy_id": self.policy_id, "user_id": self.user_id, "end_user_id": self.end_user_id}

    def lock(self) -> None:
        """Let one change at a time decide what their preferences are; held until the transaction ends."""
        key = f"memory:{self.policy_id}:{self.user_id}:{self.end_user_id}"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])


def lock_all(people: Iterable[Person]) -> None:
    """Lock several people's preferences, in one order, whoever else does this."""
    for person in sorted(people, key=str):
        person.lock()


def end_user_of(external_id: str) -> EndUser | None:
    """Return the end user of the tenant in scope that a client names, if that one was ever named before."""
    return EndUser.objects.filter(external_id=external_id).first()
