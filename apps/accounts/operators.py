"""Whom to tell when something goes wrong: what the installation says of itself, or who runs it in general."""

from django.conf import settings

_NOBODY_NAMED = "whoever runs this installation"


def operators_plain() -> str:
    """Return whom to tell, for a mail or a refusal."""
    return " ".join(str(settings.OPERATOR_CONTACT).split()) or _NOBODY_NAMED
