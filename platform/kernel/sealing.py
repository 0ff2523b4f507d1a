"""Secrets that must be read again (to sign with them), encrypted at rest."""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """What was sealed cannot be opened: the installation's SECRET_KEY is another one by now."""


def seal(secret: bytes, *, purpose: str) -> str:
    """Return `secret` encrypted and authenticated. Opened only under the same purpose."""
    return _box(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, purpose=purpose).encrypt(secret).decode()


def unseal(sealed: str, *, purpose: str) -> bytes:
    """Return what was sealed, also under a key in SECRET_KEY_FALLBACKS; raises Unreadable."""
    try:
        return _box(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, purpose=purpose).decrypt(sealed)
    except InvalidToken as error:
        raise Unreadable("sealed under another SECRET_KEY") from error


@cache
def _box(*keys: str, purpose: str) -> MultiFernet:
    """Return a box whose key is derived (HKDF, RFC 5869), so that no two purposes share one."""
    return MultiFernet(
        [
            Fernet(
                base64.urlsafe_b64encode(
                    HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode()).derive(key.encode())
                )
            )
            for key in keys
        ]
    )
