"""What the forms of an account say where they refuse something:
which field, what its limit is, and what to do next.

Texts stand here, by the code that django-allauth or Django gives a refusal, and for what any form may refuse
in `kernel.refusals`. None says whether somebody
has an account.
"""

from collections.abc import Mapping

from django.conf import settings
from django.core.exceptions import ValidationError

from kernel import refusals

_MINUTES = settings.LOGIN_TRIES_WITHIN_S // 60
_WAIT = (
    f"Too many tries: after {settings.LOGIN_TRIES} that fail within {_MINUTES} minutes none is taken. "
    f"Wait {_MINUTES} minutes, then try again."
)
_ENDED = "This link was used already, or it is too old. Ask for another."

ACCOUNT: Mapping[str, str] = {
    "account_inactive": "This account is closed. Ask whoever runs this installation to open it again.",
    "cannot_remove_primary_email": "The first address stays. Make another one the first, then take this one out.",
    "duplicate_email": "Email: this address stands in your account already. Give another one.",
    "email_password_mismatch": (
        "Email and password do not go together. Type both once more, or set a new password: “Forgot the password?”, "
        f"below. After {settings.LOGIN_TRIES} tries that fail, an address waits for {_MINUTES} minutes."
    ),
    "email_taken": (
        "Email: this address cannot be used here. If it is yours, sign in, or set a new password there; if not, give "
        "another one."
    ),
    "enter_current_password": (
        "Password now: this is not it. Type it once more, or set a new one: “Forgot it?”, below."
    ),
    "incorrect_code": "Code: this is not it, or it has ended. Take the one of the newest mail, or have another sent.",
    "incorrect_password": "Password: this is not it. Type it once more.",
    "invalid_login": "Email: this is no address. It looks like you@example.org.",
    "invalid_or_expired_key": _ENDED,
    "invalid_password_reset": _ENDED,
    "max_email_addresses": "Email: an account has at most %d addresses. Take one out first.",
    "rate_limited": _WAIT,
    "same_as_current": "This is what it was. Give another one.",
    "too_many_login_attempts": _WAIT,
    "unknown_email": "Email: this address cannot be used here. Give another one.",
    "unverified_primary_email": "The first address is not confirmed. Follow the link in its mail first.",
}
"""By codes of allauth.account; accounts here have no telephone and no user name."""

FIRST_UNCONFIRMED = (
    "Only a confirmed address can be the first. Follow the link in its mail, then make it the first."
)
FIRST_ELSEWHERE = (
    "This address is the first one of another account. Take it out there, or give that account another."
)
"""What `apps.accounts.addresses` says."""

LINKED: Mapping[str, str] = {
    "connected_other": "That account is linked to another account here. Unlink it there first.",
    "disconnect_last": "This is the only way into your account. Set a password first, or link another account.",
    "email_taken": (
        "Email: this address cannot be used for a new account. If it is yours, sign in as you did before, then link "
        "your %s account: “Linked accounts”."
    ),
    "invalid_token": "What came back is too old, or was used already. Begin once more.",
    "no_password": "This is the only way into your account. Set a password first: “Password”.",
    "no_verified_email": "No address of your account is confirmed. Confirm one first: “Addresses”.",
}
"""By codes of allauth.socialaccount."""

SECOND_FACTOR: Mapping[str, str] = {
    "add_email_blocked": (
        "Email: an account with a second factor takes no further address. Take the second factor out, add the "
        "address, confirm it, and add the second factor again."
    ),
    "cannot_delete_authenticator": "Who runs the console keeps a second factor: add another one first.",
    "cannot_generate_recovery_codes": "Recovery codes come with an app or a key: add one of these first.",
    "incorrect_code": (
        "Code: this is not it, or it was used already. Type the one that the app shows now, or a recovery code that "
        "was not used."
    ),
    "unverified_email": (
        "Confirm every address of your account first, or take it out: under Addresses. With a second factor on an "
        "address of somebody else, that person could never come in."
    ),
}
"""By codes of allauth.mfa."""

_NO_KEY = "The security key did not answer, or not as it should. Plug it in once more, and try again."
_FIELDS: Mapping[str, str] = {
    "password_too_common": "{field}: many people have this one, so it is guessed first. Take another.",
    "password_too_short": "{field}: at least {min_length} characters. Make it longer.",
    "password_too_similar": "{field}: it is too much like your {verbose_name}. Take another.",
}
"""By codes of Django's password validators."""
_OF_ONE_FIELD: Mapping[tuple[str, str | None], str] = {
    ("account", "invalid_choice"): "This account is not linked any more. Load the page again.",
    ("account", "required"): "Choose the account to unlink.",
    ("credential", "incorrect_code"): _NO_KEY,
    ("credential", "invalid"): _NO_KEY,
    ("credential", "required"): _NO_KEY,
    ("email", "invalid"): "{field}: this is no address. It looks like you@example.org.",
    ("login", "invalid"): "{field}: this is no address. It looks like you@example.org.",
    ("password2", None): "{field}: the two are not the same. Type the new password twice.",
}
"""By field and code; the library gives none where two passwords differ."""
_NAMES = {
    "Authenticator code": "Code",
    "Current Password": "Password now",
    "New Password": "New password",
    "New Password (again)": "New password, again",
    "Password (again)": "Password, again",
}
"""What the pages call a field, where the library calls it something else."""


class InOurWords(refusals.InOurWords):
    """A form whose fields refuse in the words of this module, and else in those of all forms."""

    def called(self, name: str) -> str:
        """Return what the pages call a field."""
        label = super().called(name)
        return _NAMES.get(label, label)

    def words_of(self, name: str, error: ValidationError) -> str | None:
        """Return what is said of a refusal at a field; None for an adapter's, said in our words already."""
        words = _OF_ONE_FIELD.get((name, error.code)) or _FIELDS.get(error.code or "")
        if words is None:
            return super().words_of(name, error)
        return words.format(field=self.called(name), **(error.params or {}))
