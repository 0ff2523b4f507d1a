"""How django-allauth behaves here."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Accounts are made by operators and by commands; nobody signs up by themselves yet."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False
