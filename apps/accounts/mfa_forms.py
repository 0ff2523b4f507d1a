"""The forms of second factors, refusing in our own words, and saying why where a secret cannot be read."""

from allauth.mfa.base import forms
from allauth.mfa.totp import forms as totp
from allauth.mfa.webauthn import forms as keys
from django.core.exceptions import ValidationError

from apps.accounts.words import InOurWords
from kernel.sealing import Unreadable

UNREADABLE = (
    "No code can be checked: the SECRET_KEY of this installation was changed. Ask whoever runs it to put the "
    "one before into SECRET_KEY_FALLBACKS."
)


class _SaysWhy(InOurWords, forms.BaseAuthenticateForm):  # type: ignore[misc]  # allauth is not typed
    def clean_code(self) -> str:
        """Return the code; refuse every one, in words, where what it is compared with cannot be read."""
        try:
            return str(super().clean_code())
        except Unreadable as error:
            raise ValidationError(UNREADABLE) from error


class AuthenticateForm(_SaysWhy, forms.AuthenticateForm):  # type: ignore[misc]
    """The code that a sign-in asks for."""


class ReauthenticateForm(_SaysWhy, forms.ReauthenticateForm):  # type: ignore[misc]
    """The code that is asked for once more before something delicate."""


class ActivateTOTPForm(InOurWords, totp.ActivateTOTPForm):  # type: ignore[misc]
    """The first code of an app."""


class AddWebAuthnForm(InOurWords, keys.AddWebAuthnForm):  # type: ignore[misc]
    """A security key and what to call it."""


class EditWebAuthnForm(InOurWords, keys.EditWebAuthnForm):  # type: ignore[misc]
    """What to call a security key."""


class AuthenticateWebAuthnForm(InOurWords, keys.AuthenticateWebAuthnForm):  # type: ignore[misc]
    """The security key that a sign-in asks for."""


class ReauthenticateWebAuthnForm(InOurWords, keys.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    """The security key that is asked for once more before something delicate."""
