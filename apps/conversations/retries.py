"""Tell a retry from a second request."""

import datetime as dt
import uuid

from django.utils import timezone

from apps.conversations.errors import IdempotencyKeyReused
from apps.conversations.models import Turn

# OpenAI's SDK waits at most ten minutes for a reply and a few seconds between tries.
RETRY_WINDOW = dt.timedelta(minutes=15)


def find_repeated(
    *, key_id: uuid.UUID, body_sha256: str, idempotency_key: str | None, is_retry: bool
) -> Turn | None:
    """Return the turn that this request repeats, if it is a repetition.

    It is one where the client says so: by the same `Idempotency-Key`, or by a retry header with the
    body of a recent turn of the same key. A turn whose reply a later request took up has reached its client, so
    it is no lost one. Raises IdempotencyKeyReused where the key came with another body before.
    """
    turns = Turn.objects.select_related("session", "version")
    if idempotency_key is not None:
        turn = turns.filter(key_id=key_id, idempotency_key=idempotency_key).first()
        if turn is not None and turn.body_sha256 != body_sha256:
            raise IdempotencyKeyReused(
                "This idempotency key was used with another request body.", field="Idempotency-Key"
            )
        return turn
    if not is_retry:
        return None
    return (
        turns.filter(
            key_id=key_id,
            body_sha256=body_sha256,
            next_turn=None,
            created_at__gte=timezone.now() - RETRY_WINDOW,
        )
        .order_by("-created_at", "-id")
        .first()
    )
