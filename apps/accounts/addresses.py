"""The addresses of an account, as django-allauth has them:
which of them may be the first one, by which one signs in."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.views import EmailView
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.accounts import words


class Addresses(EmailView):  # type: ignore[misc]  # allauth is not typed
    """The library's page, where only a confirmed address becomes the first,
    and none that another account has as its own.

    The library takes an unconfirmed one as long as none is confirmed: whether that worked would tell anybody
    who has an account.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Do what was asked, or say why not."""
        # looked up as the library does: an address is kept in lower case
        wanted = request.POST.get("email", "").strip().lower() if "action_primary" in request.POST else ""
        its = EmailAddress.objects.filter(user=request.user)
        own = next((one for one in its if one.email == wanted), None) if wanted else None
        if own is not None and not own.verified:
            return _refused(request, words.FIRST_UNCONFIRMED)
        try:
            with transaction.atomic():
                answer: HttpResponse = super().post(request, *args, **kwargs)
        except IntegrityError:
            if own is None:
                raise
            return _refused(request, words.FIRST_ELSEWHERE)
        return answer


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    messages.error(request, why)
    return redirect("account_email")
