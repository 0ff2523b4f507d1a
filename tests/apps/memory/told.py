"""What a person's next prompt would be told."""

import uuid
from typing import Any

from apps.conversations.told import Told
from apps.memory.models import Preference
from apps.memory.people import Person
from apps.memory.prompt import told
from kernel.calls import Plan, call, run
from kernel.tenancy import tenant_scope
from tests.tenants import Somebody


def person(somebody: Somebody, end_user: Any = None) -> Person:
    return Person(somebody.policy.id, somebody.user.id, end_user.id if end_user is not None else None)


def told_now(tenant_id: uuid.UUID, whose: Person) -> dict[str, Any]:
    """What the gateway's look-up says of a person."""

    def ask() -> Plan[dict[str, Any]]:
        return (
            yield call(
                "attune_memory",
                {
                    "tenant": tenant_id,
                    "policy": whose.policy_id,
                    "user": whose.user_id,
                    "end_user_id": whose.end_user_id,
                },
            )
        )

    return run(ask())


def telling(somebody: Somebody, end_user: Any = None) -> Told | None:
    with tenant_scope(somebody.tenant.id):
        return told(told_now(somebody.tenant.id, person(somebody, end_user)))


def said(row: Preference) -> dict[str, Any]:
    """A preference as what measured it knows it."""
    return {"id": str(row.pk), "revision": row.revision}


def words_told(somebody: Somebody, end_user: Any = None) -> list[str]:
    found = telling(somebody, end_user)
    return [line[3:-1] for line in found.text.split("\n")[1:]] if found is not None else []
