"""What the description of /api says that the views do not:
how callers are known, and what errors look like."""

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from kernel.rest.wishes import HEADER, KEPT, LONGEST_KEY
from kernel.tenancy import system_scope


class Generator(SchemaGenerator):
    """Describes views with all tenants in scope:
    it makes querysets to look at their models and reads no row."""

    def get_schema(self, *args: Any, **kwargs: Any) -> Any:
        """Return the description."""
        with system_scope("describe the views"):
            return super().get_schema(*args, **kwargs)  # type: ignore[no-untyped-call]


IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
    OpenApiParameter.HEADER,
    description=(
        f"The same request again, under the same key and within {KEPT.days} days, makes nothing: it is answered with "
        "what the first one made, as it stands now, and with `Idempotent-Replayed: true`. Where that answer held a "
        "secret, which is shown once, or what it made is gone, with 409 and its id as `made`; where the request was "
        "another one, with 409 too."
    ),
)


class Described(AutoSchema):
    """Says of every POST that it is done once under an `Idempotency-Key`: `kernel.rest.views` sees to it."""

    def get_override_parameters(self) -> list[Any]:
        """Return the header's parameter beside those of the view."""
        return [IDEMPOTENCY_KEY] if self.method == "POST" else []


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A key in the Authorization header."""

    target_class = "apps.keys.rest.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        del auto_schema
        return {"type": "http", "scheme": "bearer", "bearerFormat": "at-…"}


class BrowserScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The cookie of a signed-in person."""

    target_class = "apps.keys.rest.BrowserAuthentication"
    name = "browser"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        del auto_schema
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "A stable word for programs."},
        "detail": {"type": "string", "description": "For people."},
        "made": {
            "type": "string",
            "format": "uuid",
            "description": "What a request under the same `Idempotency-Key` made before.",
        },
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
_REFUSALS = {
    "400": "The input breaks a rule; `errors` names the field.",
    "401": "No valid key.",
    "403": "The key or the role does not allow this.",
    "404": "There is no such thing in the tenant.",
    "409": "The state of the thing does not allow this now.",
    "415": "The body is not JSON.",
    "429": "Too many requests; `Retry-After` says when to come back.",
}
_SAID: dict[str, tuple[str, ...]] = {
    "400": ("invalid_input", "name: Ensure this field has no more than 100 characters.", "name"),
    "401": ("not_authenticated", "Authentication credentials were not provided."),
    "403": ("forbidden", "This needs more than the access `view`. Ask an owner for another role."),
    "404": ("not_found", "There is no such thing here."),
    "409": ("conflict", "there is already one of that name"),
    "415": ("unsupported_media_type", 'Unsupported media type "text/plain" in request.'),
    "429": ("throttled", "Request was throttled. Expected available in 12 seconds."),
}
_HEADERS = {
    "RateLimit-Limit": "How many requests a caller has in a minute: a key, or a person who has signed in.",
    "RateLimit-Remaining": "How many of them are left.",
    "RateLimit-Reset": "Seconds until the oldest of them no longer counts.",
    "Retry-After": "Seconds until it is worth asking again.",
}
EXAMPLES = Path(__file__).parent / "openapi_examples.json"
_SOME_ID = "0199a3f0-5c1e-7fff-9d2b-60f4c8a1efff"


def close_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every body that it has the fields described and no others, as `kernel.rest.reading` sees to."""
    schemas = result["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("Request") and schema["type"] == "object":
            schema["additionalProperties"] = False
    for methods in result["paths"].values():
        for operation in methods.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                body = schemas.get(media["schema"].get("$ref", "").rpartition("/")[2], {})
                if body.get("minProperties"):  # else it is said by the fields that it requires
                    operation["requestBody"]["required"] = True
    return result


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Give every operation the refusals that it may answer with."""
    result["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    result["components"]["responses"] = {
        f"Problem{status}": {
            "description": words,
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "example": _problem(status),
                }
            },
        }
        for status, words in _REFUSALS.items()
    }
    for path in result["paths"].values():
        for method, operation in path.items():
            for status in _REFUSALS:
                if status in {"409", "415"} and method == "get":
                    continue
                operation["responses"].setdefault(status, {"$ref": f"#/components/responses/Problem{status}"})
    return result


def _problem(status: str) -> dict[str, Any]:
    code, detail, *fields = _SAID[status]
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(int(status)).phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
    }
    if fields:
        problem["errors"] = [{"field": fields[0], "detail": detail.partition(": ")[2]}]
    return problem


def add_headers(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every answer what is left of the caller's rate, and of a refusal for it when to come back."""
    result["components"]["headers"] = {
        name: {"description": words, "schema": {"type": "integer", "minimum": 0}}
        for name, words in _HEADERS.items()
    }
    named = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}
    result["components"]["responses"]["Problem429"]["headers"] = named
    for path in result["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    response["headers"] = {name: one for name, one in named.items() if name != "Retry-After"}
    return result


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Show of every operation what one asked and what the views answered, as `tests/rest/recording.py` kept it."""
    kept = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    for path in result["paths"].values():
        for operation in path.values():
            example = kept.get(operation["operationId"], {})
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["example"] = example.get("id", _SOME_ID)
            for media in operation.get("requestBody", {}).get("content", {}).values():
                if "request" in example:
                    media["example"] = example["request"]
            response = operation["responses"].get(example.get("status"), {})
            for media in response.get("content", {}).values():
                if "response" in example:
                    media["example"] = example["response"]
    return result
