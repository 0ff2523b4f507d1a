"""Tell a retry from a second request."""

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.conversations.errors import IdempotencyKeyReused
from apps.conversations.models import TurnState

# OpenAI's SDK waits at most ten minutes for a reply and a few seconds between tries.
RETRY_WINDOW = dt.timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The turn that a request repeats: still pending, or complete with its reply."""

    turn_id: uuid.UUID
    tenant_id: uuid.UUID
    state: str
    session: str
    """The session as its client names it."""


def read_repeated(
    *, found: Mapping[str, Any] | None, tenant_id: uuid.UUID, body_sha256: str, idempotency_key: str | None
) -> Repeated | None:
    """Return the turn that this request repeats, if that is pending or complete; else it is answered anew.

    It is a repetition where the client says so: by the same `Idempotency-Key`, or by a retry header with the
    body of a recent turn of the same key. Raises IdempotencyKeyReused where the key stands for another body.
    """
    if found is None or found["state"] not in (TurnState.PENDING, TurnState.COMPLETE):
        return None
    if idempotency_key is not None and found["body_sha256"] != body_sha256:
        raise IdempotencyKeyReused(
            "This idempotency key was used with another request body.", field="Idempotency-Key"
        )
    return Repeated(uuid.UUID(found["id"]), tenant_id, found["state"], found["name"])


def taken_over(found: Mapping[str, Any] | None) -> str | None:
    """Return the turn whose place a request takes that `read_repeated` has answered anew:
    one that is presumed lost."""
    return found["id"] if found is not None and found["lost"] else None
