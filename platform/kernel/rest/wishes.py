"""The same POST again, under the same `Idempotency-Key`: what it made is kept, never what was said or answered.

The row of a wish is written first, in the transaction in which the view does its work. Two that come at once
stand in line at its unique key; what is refused, or dies, leaves no row and may be asked for again.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.crypto import salted_hmac

from kernel.errors import Conflict, InvalidInput
from kernel.models import Wish

if TYPE_CHECKING:  # workers, who forget old wishes, load no REST framework
    from rest_framework.request import Request

HEADER = "Idempotency-Key"
LONGEST_KEY = 255
KEPT = timedelta(days=7)
_SALT = "attune.rest.wish"


@dataclass(frozen=True, slots=True)
class Asked:
    """A POST with an idempotency key: whose it is, and a keyed hash of its address and body."""

    tenant_id: uuid.UUID
    user_id: uuid.UUID
    key: str
    mac: bytes

    @classmethod
    def of(cls, request: "Request", *, tenant_id: uuid.UUID, user_id: uuid.UUID) -> "Asked | None":
        """Return what a request asks, None where it names no key; raise InvalidInput for one that is too long."""
        key = request.headers.get(HEADER)
        if key is None:
            return None
        if not 1 <= len(key) <= LONGEST_KEY:
            raise InvalidInput(f"An idempotency key has 1 to {LONGEST_KEY} characters.", field=HEADER)
        said = json.dumps([request.path, request.data], sort_keys=True, separators=(",", ":"))
        return cls(tenant_id, user_id, key, salted_hmac(_SALT, said, algorithm="sha256").digest())


def find(asked: Asked) -> Wish | None:
    """Return the wish that came before under the same key; raise Conflict where that was another one."""
    found = Wish.objects.filter(
        tenant_id=asked.tenant_id, user_id=asked.user_id, idempotency_key=asked.key
    ).first()
    if found is not None and bytes(found.request_mac) != asked.mac:
        raise Conflict(
            "This idempotency key was used for another request. Use a new key.",
            field=HEADER,
            code="idempotency_key_reused",
        )
    return found


def claim(asked: Asked) -> tuple[Wish, bool]:
    """Return the wish, and whether it is new; as `find`. The caller's transaction holds a new one until it is done."""
    wish, is_new = Wish.objects.get_or_create(
        tenant_id=asked.tenant_id,
        user_id=asked.user_id,
        idempotency_key=asked.key,
        defaults={"request_mac": asked.mac},
    )
    if not is_new:
        wish = find(asked) or wish
    return wish, is_new


def keep(wish: Wish, *, status: int, answer: Mapping[str, Any]) -> None:
    """Note what an answer was of: the id in it, or in what stands beside the secret that it shows."""
    wish.shows_secret = "secret" in answer
    shown = answer if "id" in answer else next(one for one in answer.values() if isinstance(one, Mapping))
    wish.made = uuid.UUID(str(shown["id"]))
    wish.status = status
    wish.save(update_fields=["shows_secret", "made", "status"])


def prune() -> int:
    """Forget wishes of more than `KEPT` ago; returns how many. Needs the system scope."""
    return Wish.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]
