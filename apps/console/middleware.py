"""Operators see every tenant: enter the system scope for the console, and only there."""

from collections.abc import Callable

from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from kernel.tenancy import system_scope


class OperatorScopeMiddleware:
    """Run console requests of logged-in operators under the system scope."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request; anyone else keeps no scope and so sees no tenant's rows."""
        if request.path.startswith("/console/") and request.user.is_active and request.user.is_staff:
            if settings.CONSOLE_REQUIRES_MFA and not is_mfa_enabled(request.user):
                messages.warning(request, "The console needs a second factor: add one first.")
                return redirect("mfa_index")
            with system_scope(f"console user {request.user.pk}"):
                return self.get_response(request)
        return self.get_response(request)
