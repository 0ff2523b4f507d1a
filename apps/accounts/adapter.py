"""How django-allauth behaves here."""

import datetime as dt
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.sites.shortcuts import get_current_site
from django.http import HttpRequest

from apps.accounts import mails, words
from apps.accounts.invitations import find

CODES_LAST = dt.timedelta(minutes=15)  # the longest of allauth's; a browser waits for it
INVITED = "invitation"  # where a browser's session keeps the token of the link that it came with


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Sign-up is open to everybody, or, with SIGNUP_OPEN off, to who was invited."""

    error_messages: ClassVar[dict[str, str]] = {**DefaultAccountAdapter.error_messages, **words.ACCOUNT}

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this visitor may make an account."""
        return bool(settings.SIGNUP_OPEN) or find(request.session.get(INVITED, "")) is not None

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Write a mail down for a worker to bring: a mail server that is away holds up no page."""
        around = {"request": self.request, "email": email, "current_site": get_current_site(self.request)}
        message = self.render_mail(template_prefix, email, {**around, **context})
        lasts = CODES_LAST if "code" in context else mails.LINKS_LAST
        mails.post(kind=template_prefix, to=email, subject=message.subject, text=message.body, lasts=lasts)
