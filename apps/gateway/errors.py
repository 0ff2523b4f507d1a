"""Errors in OpenAI's shape: what its clients turn into their own exceptions."""

import math
from typing import Any

import orjson
from django.http import HttpResponse

from kernel.errors import AttuneError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def error_object(error: AttuneError) -> dict[str, Any]:
    """Return the body of an error response, which is also what an error frame of a stream holds."""
    fallback = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": error.message,
            "type": _TYPES.get(error.status, fallback),
            "param": error.field,
            "code": error.code,
        }
    }


def error_response(error: AttuneError) -> HttpResponse:
    """Return the response that tells a client of `error`."""
    response = HttpResponse(
        orjson.dumps(error_object(error)), status=error.status, content_type="application/json"
    )
    if error.retry_after_s is not None:
        response["Retry-After"] = str(math.ceil(error.retry_after_s))
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


class Internal(AttuneError):
    """Something broke here; the log has it, the client learns no more."""

    code = "internal_error"
    status = 500


class MethodNotAllowed(AttuneError):
    """The route exists, this method on it does not."""

    code = "method_not_allowed"
    status = 405
