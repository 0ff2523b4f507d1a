"""Errors as problem details (RFC 9457): one shape for every refusal under /api."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from kernel.errors import AttuneError

MEDIA_TYPE = "application/problem+json"


def handle(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the problem that an exception is, or None for what nobody foresaw (a 500)."""
    del context
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, AttuneError):
        fields = [{"field": error.field, "detail": error.message}] if error.field else []
        response = _problem(error.status, error.code, error.message, fields, wait_s=error.retry_after_s)
        if "made" in error.detail:
            response.data["made"] = error.detail["made"]
        return response
    if isinstance(error, exceptions.ValidationError):
        fields = [{"field": name, "detail": words} for name, words in _flat(error.detail)]
        said = "; ".join(
            f"{one['field']}: {one['detail']}" if one["field"] else one["detail"] for one in fields
        )
        return _problem(error.status_code, "invalid_input", said, fields)
    if isinstance(error, exceptions.APIException):
        codes = error.get_codes()
        response = _problem(
            error.status_code,
            codes if isinstance(codes, str) else "error",
            str(error.detail),
            [],
            wait_s=getattr(error, "wait", None),
        )
        if challenge := getattr(error, "auth_header", None):
            response.headers["WWW-Authenticate"] = challenge
        return response
    return None


def _problem(
    status: int, code: str, detail: str, fields: list[dict[str, str]], *, wait_s: float | None = None
) -> Response:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": _as_text(detail),
    }
    if fields:
        body["errors"] = [{name: _as_text(words) for name, words in one.items()} for one in fields]
    response = Response(body, status=status, content_type=MEDIA_TYPE)
    if wait_s is not None:
        response.headers["Retry-After"] = str(max(1, round(wait_s)))
    return response


def _as_text(words: str) -> str:
    """Return words that may repeat a body's: half of a surrogate pair, which JSON can say and UTF-8 cannot, is spelt out."""
    return words.encode("utf-8", "backslashreplace").decode()


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted field, words) of a serializer's nested complaints."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flat(inner, path if name == "non_field_errors" else f"{path}.{name}".lstrip("."))
    elif isinstance(detail, list):
        for number, inner in enumerate(detail):
            yield from _flat(inner, path if isinstance(inner, str) else f"{path}[{number}]")
    else:
        yield path, str(detail)
