"""Headers of pages."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


class ContentSecurityMiddleware:
    """Let pages load scripts, styles and pictures of this site and nothing else.

    The console is left out: its library needs scripts that evaluate strings.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header."""
        response = self.get_response(request)
        if not request.path.startswith("/console/"):
            response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response
