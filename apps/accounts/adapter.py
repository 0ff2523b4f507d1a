"""How django-allauth behaves here."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

from apps.accounts.invitations import find

INVITED = "invitation"  # where a browser's session keeps the token of the link that it came with


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Sign-up is open to everybody, or, with SIGNUP_OPEN off, to who was invited."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this visitor may make an account."""
        return bool(settings.SIGNUP_OPEN) or find(request.session.get(INVITED, "")) is not None
