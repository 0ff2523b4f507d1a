"""Every request to the web has an id: in its answer,
on pages that say that something went wrong, and in the log."""

import logging
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"
_NAME = "attune_request_id"


class RequestIdMiddleware:
    """Give each request an id and send it along.

    A client's own is not taken: nobody chooses what a log says.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request."""
        setattr(request, _NAME, secrets.token_hex(6))
        response = self.get_response(request)
        response.headers[HEADER] = id_of(request)
        return response


def id_of(request: object) -> str:
    """Return the id of a request, or "" of one that never came past the middleware."""
    return str(getattr(request, _NAME, ""))


class NamesRequest(logging.Filter):
    """Lets a line that was logged of a request end with its id."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Set `of_request`; every line passes."""
        named = id_of(getattr(record, "request", None))
        record.of_request = f" (request {named})" if named else ""
        return True
