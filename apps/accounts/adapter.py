"""How django-allauth behaves here."""

import logging
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

from apps.accounts import words
from apps.accounts.invitations import find

logger = logging.getLogger(__name__)
INVITED = "invitation"  # where a browser's session keeps the token of the link that it came with


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Sign-up is open to everybody, or, with SIGNUP_OPEN off, to who was invited."""

    error_messages: ClassVar[dict[str, str]] = {**DefaultAccountAdapter.error_messages, **words.ACCOUNT}

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this visitor may make an account."""
        return bool(settings.SIGNUP_OPEN) or find(request.session.get(INVITED, "")) is not None

    def send_notification_mail(self, template_prefix: str, *given: Any, **named: Any) -> None:
        """Tell an account's address of a change.

        The change is made by then, so a mail server that is away undoes nothing.
        """
        try:
            super().send_notification_mail(template_prefix, *given, **named)
        except OSError:  # what smtplib raises is one, too
            logger.exception("nobody was told: %s", template_prefix)
