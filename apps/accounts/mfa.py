"""Second factors: what django-allauth would store in the clear is sealed."""

from typing import ClassVar

from allauth.mfa.adapter import DefaultMFAAdapter

from apps.accounts import words
from kernel.sealing import seal, unseal

PURPOSE = "mfa"
SEALED = "sealed:"
"""Before what was sealed: neither a TOTP secret (base32) nor a recovery seed (hex) holds a colon."""


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth is not typed
    """Seals TOTP secrets and the seeds of recovery codes with a key derived from SECRET_KEY."""

    error_messages: ClassVar[dict[str, str]] = {**DefaultMFAAdapter.error_messages, **words.SECOND_FACTOR}

    def encrypt(self, text: str) -> str:
        """Return what the database may hold."""
        return SEALED + seal(text.encode(), purpose=PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret; raise Unreadable, which lets nobody in, where SECRET_KEY is another one by now.

        A row from before secrets were sealed is read as it stands.
        """
        if not encrypted_text.startswith(SEALED):
            return encrypted_text
        return unseal(encrypted_text.removeprefix(SEALED), purpose=PURPOSE).decode()
