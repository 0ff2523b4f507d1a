"""Signatures of webhooks as Standard Webhooks 1.0 describes them: HMAC-SHA256 over id, time and body."""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification asks for 24 to 64
PURPOSE = "webhook signing secret"


def new_secret() -> bytes:
    """Return a random secret."""
    return secrets.token_bytes(SECRET_BYTES)


def shown(secret: bytes) -> str:
    """Return a secret as the receiver's library takes it."""
    return PREFIX + base64.b64encode(secret).decode()


def read(text: str) -> bytes:
    """Return the bytes of a shown secret; ValueError where it is none."""
    try:
        return base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not a webhook secret") from error


def signature(*, message_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]) -> str:
    """Return the `webhook-signature` header: one signature for each secret, newest first."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    found = (
        base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode() for secret in secrets
    )
    return " ".join(f"v1,{one}" for one in found)


def headers(*, message_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """Return the three headers of a signed webhook. `timestamp` is of this attempt, seconds."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(
            message_id=message_id, timestamp=timestamp, body=body, secrets=secrets
        ),
    }
