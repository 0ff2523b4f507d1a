"""The forms that ask for a second factor's code."""

from allauth.mfa.base import forms
from django.core.exceptions import ValidationError

from kernel.sealing import Unreadable

UNREADABLE = (
    "No code can be checked: the SECRET_KEY of this installation was changed. Ask whoever runs it to put the "
    "one before into SECRET_KEY_FALLBACKS."
)


class _SaysWhy(forms.BaseAuthenticateForm):  # type: ignore[misc]  # allauth is not typed
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
