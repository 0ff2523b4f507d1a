"""Headers of pages, what no page is asked for, and what pages say where a secret cannot be read."""

from collections.abc import Callable, Iterable

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from kernel.sealing import Unreadable

# a browser follows a form's redirects only to where forms may go
_SIGN_IN = {"google": "https://accounts.google.com", "github": "https://github.com"}


_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
)


def _policy(providers: Iterable[str]) -> str:
    """Return the policy, with the forms of sign-in going to these providers too."""
    return "; ".join(
        (*_RULES, " ".join(("form-action 'self'", *(_SIGN_IN[name] for name in sorted(providers)))))
    )


# the console's library evaluates what its templates say, and styles its parts in place
_CONSOLE = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "connect-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "font-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


class ContentSecurityMiddleware:
    """Let pages load scripts, styles and pictures of this site and nothing else;
    nothing written in a page runs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.policy = _policy(settings.SOCIALACCOUNT_PROVIDERS)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header."""
        response = self.get_response(request)
        policy = _CONSOLE if request.path.startswith("/console/") else self.policy
        response.headers.setdefault("Content-Security-Policy", policy)
        return response


class NothingHoldsNulMiddleware:
    """Find nothing where a page's query asks for a NUL:
    no text holds one, and Postgres takes none to look for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Raise Http404, or pass the request on; `/api` names the field at fault itself."""
        asked = (value for _, values in request.GET.lists() for value in values)
        if not request.path.startswith("/api/") and any("\x00" in value for value in asked):
            raise Http404
        return self.get_response(request)


class UnreadableSecretMiddleware:
    """Say that SECRET_KEY was changed where a page needs a secret sealed under the one before."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page that says so; None for any other error."""
        if not isinstance(error, Unreadable):
            return None
        return render(request, "unreadable.html", status=503)
