"""The forms of an account, as django-allauth has them, refusing in our own words."""

from allauth.account import forms as account
from allauth.socialaccount import forms as linked
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.accounts.invitations import confirm_address
from apps.accounts.models import User
from apps.accounts.words import ACCOUNT, InOurWords


class LoginForm(InOurWords, account.LoginForm):  # type: ignore[misc]  # allauth is not typed
    """Address and password."""


class SignupForm(InOurWords, account.SignupForm):  # type: ignore[misc]
    """A new account, with its address and its place: all of it or nothing."""

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        """Make the account; an address that was taken since it was looked at, as by a double click, is answered as a taken one."""
        made: tuple[User | None, HttpResponse | None]
        try:
            made = super().try_save(request)
        except IntegrityError:
            if not User.objects.filter(email=self.cleaned_data["email"].lower()).exists():
                raise
            if settings.SIGNUP_CONFIRMED:
                self.account_already_exists = True
                return self.try_save(request)
            messages.error(request, ACCOUNT["email_taken"])
            return None, redirect("account_login")
        return made

    def save(self, request: HttpRequest) -> User:
        """Make the account."""
        with transaction.atomic():
            user: User = super().save(request)
            confirm_address(user)
        return user


class AddEmailForm(InOurWords, account.AddEmailForm):  # type: ignore[misc]
    """One more address."""


class ChangePasswordForm(InOurWords, account.ChangePasswordForm):  # type: ignore[misc]
    """The password now, and a new one twice."""


class SetPasswordForm(InOurWords, account.SetPasswordForm):  # type: ignore[misc]
    """A first password."""


class ResetPasswordForm(InOurWords, account.ResetPasswordForm):  # type: ignore[misc]
    """Where the link for a new password goes."""


class ResetPasswordKeyForm(InOurWords, account.ResetPasswordKeyForm):  # type: ignore[misc]
    """The new password that such a link is for."""


class ReauthenticateForm(InOurWords, account.ReauthenticateForm):  # type: ignore[misc]
    """The password, before something delicate."""


class ConfirmReauthenticationCodeForm(InOurWords, account.ConfirmReauthenticationCodeForm):  # type: ignore[misc]
    """The code of a mail, before something delicate."""


class LinkedSignupForm(InOurWords, linked.SignupForm):  # type: ignore[misc]
    """A new account for who comes from elsewhere: all or nothing."""

    def save(self, request: HttpRequest) -> User:
        """Make the account."""
        with transaction.atomic():
            user: User = super().save(request)
            confirm_address(user)
        return user


class UnlinkForm(InOurWords, linked.DisconnectForm):  # type: ignore[misc]
    """Which account is not to sign one in any more."""
