"""Signing in through Google or GitHub, where the installation has registered with them."""

from typing import Any, ClassVar

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from django.http import Http404, HttpRequest

from apps.accounts import words
from apps.accounts.invitations import confirm_address
from apps.accounts.models import User
from apps.dashboard.entrance import enter


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """A first sign-in makes an account like any other.

    An address that is taken is never a way into its account.

    Whoever has an account already signs in with it and links the other one on the page for that.
    """

    error_messages: ClassVar[dict[str, str]] = {**DefaultSocialAccountAdapter.error_messages, **words.LINKED}

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Make the account, and its place in a tenant where no form asked for one."""
        user: User = super().save_user(request, sociallogin, form)
        if form is None:
            enter(request, user, "")
            confirm_address(user)
        return user

    def get_app(self, request: HttpRequest, provider: str, client_id: str | None = None) -> SocialApp:
        """Return the installation's registration; raise Http404 where there is none."""
        try:
            return super().get_app(request, provider, client_id)
        except SocialApp.DoesNotExist:
            raise Http404 from None
